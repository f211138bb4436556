from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from icemigrate.errors import EngineError
from icemigrate.spark import gateway
from icemigrate.spark.find_java import JavaInstallation
from icemigrate.spark.jar_download import fetch_error, fetch_missing
from icemigrate.spark.jars import JarLocations
from icemigrate.spark.session_settings import SparkSettings
from icemigrate.system.waits import show_waits
from icemigrate.versions import CURRENT

NOT_FOUND = """\
:: resolving dependencies :: org.apache.spark#spark-submit-parent-1;1.0

:: problems summary ::
:::: WARNINGS
\t\tmodule not found: org.x#nothing;1.0

\t==== local-m2-cache: tried

\t  file:/m2/repository/org/x/nothing/1.0/nothing-1.0.pom

\t==== mirror: tried

\t  https://me:hush@mirror.example/maven/org/x/nothing/1.0/nothing-1.0.pom

\t\t::          UNRESOLVED DEPENDENCIES         ::

\t\t:: org.x#nothing;1.0: not found

:::: ERRORS
\tServer access error at url https://me:hush@mirror.example/x (java.net.ConnectException: Connection refused)

Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: org.x#nothing;1.0: not found]
"""


def test_the_error_names_the_jar_the_places_and_the_way_out() -> None:
    error = fetch_error(NOT_FOUND, [Path("/cache/jars")])
    assert error is not None
    assert error.message.splitlines() == [
        "jars are missing and could not be fetched: org.x:nothing:1.0",
        "  not in /cache/jars",
        "  not in repository `local-m2-cache`",
        "  not in repository `mirror` (mirror.example)",
        "  Connection refused (ConnectException)",
    ]
    assert "ICEMIGRATE_JARS" in (error.hint or "")
    assert "spark.jars.repositories" in (error.hint or "")


def test_an_output_without_a_missing_package_is_no_error() -> None:
    assert fetch_error('Exception in thread "main" x.Y: Could not parse it') is None


def fetch(monkeypatch: pytest.MonkeyPatch, folder: Path, error: OSError | None = None) -> tuple[str, Path]:
    """The error of a download by a JVM that leaves no jar, and the folder into which it should write."""
    scratch: list[Path] = []

    def launch(conf: Mapping[str, str], *_: Any, **__: Any) -> None:
        scratch.append(Path(conf["spark.jars.ivy"]))
        if error is not None:
            raise error

    monkeypatch.delenv("ICEMIGRATE_JARS", raising=False)
    monkeypatch.setattr(gateway, "launch_jvm", launch)
    monkeypatch.setattr(gateway, "end_jvm", lambda jvm: None)
    settings = SparkSettings("lake", {"type": "rest"}, conf={"spark.jars.ivy": str(folder)})
    missing = JarLocations(missing=(CURRENT.iceberg_runtime,))
    with pytest.raises(EngineError) as caught:
        fetch_missing(settings, CURRENT, missing, JavaInstallation(Path("/java"), "17"))
    return caught.value.message, scratch[0] if scratch else folder


def test_a_download_is_announced_as_every_other_wait(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "Downloading iceberg-spark-runtime-4.1_2.13 (cached for later runs) …"
    announced: list[str] = []
    with show_waits(announced.append):
        fetch(monkeypatch, tmp_path / "a")
    assert (announced, capsys.readouterr().err) == ([line], "")
    fetch(monkeypatch, tmp_path / "b")
    assert capsys.readouterr().err == f"{line}\n"


def test_an_error_of_the_system_is_one_of_the_folder_only_where_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    no_program = FileNotFoundError(2, "No such file or directory", "/spark/bin/spark-submit")
    message, _ = fetch(monkeypatch, tmp_path / "a", no_program)
    assert message.startswith(f"Spark failed to fetch {CURRENT.iceberg_runtime}: ")
    assert "spark-submit" in message
    message, _ = fetch(monkeypatch, tmp_path / "b")
    assert message.startswith(f"Spark fetched no jar of {CURRENT.iceberg_runtime} with the name ")
    (tmp_path / "c").write_text("")
    message, _ = fetch(monkeypatch, tmp_path / "c")
    assert message.startswith(f"jars cannot be stored in {tmp_path}/c/jars: ")


def test_each_download_has_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, first = fetch(monkeypatch, tmp_path)
    first.mkdir()  # as by the JVM of a process that was killed
    _, second = fetch(monkeypatch, tmp_path)
    assert first != second
    assert [path.name for path in (tmp_path / "jars").iterdir()] == [".fetch.lock"]
