"""What is started, from where, and what it may find in the working directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from icemigrate.spark import class_archive, gateway
from icemigrate.spark.find_java import JavaInstallation
from icemigrate.spark.jars import JarLocations
from icemigrate.system.process import find_program


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that holds programs, below one that looks like an installation of Spark."""
    for name in ("project/git", "bin/spark-submit"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "jars").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.mark.parametrize("path", ["", ".", ":", "..:../project", "./"])
def test_a_program_of_the_working_directory_is_not_found(hostile: Path, path: str) -> None:
    assert find_program("git", {"PATH": path}) is None
    assert find_program("git", {"PATH": f"{path}:{hostile}"}) == f"{hostile}/git"
    assert find_program("git", {"PATH": f"{path}:{hostile}"}, outside=hostile.parent) is None


def test_spark_is_the_installed_one(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark
    from pyspark.find_spark_home import _find_spark_home

    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert _find_spark_home() == str(hostile.parent), (
        "PySpark itself takes what is above the working directory"
    )
    monkeypatch.setenv("PATH", f":.:{hostile}")
    started: list[str] = []

    def launch(**_: object) -> None:
        started.extend((_find_spark_home(), os.environ["PATH"]))

    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch)
    gateway.launch_jvm({}, JavaInstallation(Path("/java"), "17"), is_local=True, output=None)
    # Spark's scripts and Hadoop start `setsid`, `chmod` and others.
    assert started == [str(Path(pyspark.__file__).parent), str(hostile)]
    assert "SPARK_HOME" not in os.environ


def test_the_archive_is_made_outside_of_the_working_directory(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[dict[str, Any]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda _, **options: started.append(options))
    class_archive.make_later(class_archive.ClassArchive(tmp_path / "a.jsa"), Path("/java"), JarLocations())
    assert [options["cwd"] for options in started] == ["/"]


def test_pyiceberg_reads_no_settings_of_the_working_directory(hostile: Path) -> None:
    (hostile / ".pyiceberg.yaml").write_text("catalog:\n  lake:\n    py-io-impl: evil.IO\nmax-workers: 7\n")
    code = (
        "from icemigrate.catalog import open_catalog\n"
        "from icemigrate.catalog.catalog_port import CatalogSettings\n"
        "where = dict(uri='http://127.0.0.1:9', warehouse=None, properties={})\n"
        "open_catalog(CatalogSettings(name='lake', type='rest', **where))\n"
        "from pyiceberg.catalog import _ENV_CONFIG\n"
        "print(dict(_ENV_CONFIG.config))\n"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(hostile.parent)}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=hostile,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("{}\n", 0), ran.stderr
