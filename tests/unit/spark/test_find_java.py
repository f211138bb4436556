from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.errors import EngineError
from icemigrate.spark import find_java

MODULES = 'MODULES="java.base jdk.incubator.vector java.sql"\n'


def make_java(home: Path, version: str | None, rest: str = MODULES, script: str = "exit 1") -> Path:
    """A folder that looks like a Java: with a `release` file, or with a program that answers like one."""
    (home / "bin").mkdir(parents=True)
    binary = home / "bin" / "java"
    binary.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    binary.chmod(0o755)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n{rest}', encoding="utf-8")
    return home


def answering(home: Path, version: str) -> str:
    return f'echo "    java.home = {home}" >&2\necho "    java.version = {version}" >&2'


def search(tmp_path: Path, wanted: tuple[int, ...] = (17, 21), **environ: str) -> find_java.JavaInstallation:
    return find_java.find_java(wanted, environ=environ, folders=(f"{tmp_path}/usual/*",))


def test_java_home_comes_first(tmp_path: Path) -> None:
    chosen = make_java(tmp_path / "chosen", "21.0.2")
    on_path = make_java(tmp_path / "path", "17.0.1")
    make_java(tmp_path / "usual" / "a", "17.0.9")
    found = search(tmp_path, JAVA_HOME=str(chosen), PATH=str(on_path / "bin"))
    assert found == find_java.JavaInstallation(chosen, "21.0.2")
    assert found.major == 21


def test_path_comes_before_the_usual_folders_and_through_links(tmp_path: Path) -> None:
    home = make_java(tmp_path / "real", "21.0.2")
    links = tmp_path / "bin"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    make_java(tmp_path / "usual" / "a", "17.0.9")
    assert search(tmp_path, PATH=str(links)).home == home


@pytest.mark.parametrize("wrong", ["11.0.20", "1.8.0_392", "25.0.3", "24-ea"])
def test_a_wrong_java_home_does_not_stop_the_search(tmp_path: Path, wrong: str) -> None:
    chosen = make_java(tmp_path / "chosen", wrong)
    right = make_java(tmp_path / "usual" / "b", "17.0.9")
    assert search(tmp_path, JAVA_HOME=str(chosen)).home == right


def test_a_java_home_that_is_not_there_does_not_stop_the_search(tmp_path: Path) -> None:
    right = make_java(tmp_path / "usual" / "b", "17.0.9")
    assert search(tmp_path, JAVA_HOME=str(tmp_path / "gone")).home == right


def test_among_the_usual_folders_the_preferred_version_wins(tmp_path: Path) -> None:
    make_java(tmp_path / "usual" / "a", "21.0.1")
    preferred = make_java(tmp_path / "usual" / "z", "17.0.9")
    assert search(tmp_path).home == preferred
    assert search(tmp_path, wanted=(21, 17)).home == tmp_path / "usual" / "a"


def test_one_without_a_release_file_is_asked(tmp_path: Path) -> None:
    home = tmp_path / "usual" / "a"
    make_java(home, None, script=answering(home, "17.0.3"))
    assert search(tmp_path) == find_java.JavaInstallation(home, "17.0.3")


def test_a_shim_on_the_path_is_asked_for_the_home_behind_it(tmp_path: Path) -> None:
    behind = tmp_path / "versions" / "17"
    shims = make_java(tmp_path / "manager", None, script=answering(behind, "17.0.3"))
    assert search(tmp_path, PATH=str(shims / "bin")).home == behind


def test_one_without_the_vector_module_will_not_do(tmp_path: Path) -> None:
    make_java(tmp_path / "usual" / "a", "17.0.9", rest='MODULES="java.base java.sql"\n')
    with pytest.raises(EngineError, match=r"without module jdk\.incubator\.vector"):
        search(tmp_path)


def test_none_at_all_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        search(tmp_path, JAVA_HOME="/nowhere/java")
    assert caught.value.message == (
        "Spark needs Java 17 or 21, but no Java was found (JAVA_HOME is /nowhere/java, which does not exist)"
    )
    assert caught.value.hint
    assert "17" in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("gone", "which does not exist"),
        ("file", "which is not a folder"),
        ("empty", "which has no bin/java"),
        ("dumb", "whose bin/java does not report a version"),
        ("old", "which is Java 11.0.20"),
        ("cut", "which is Java 17.0.9 without the module jdk.incubator.vector"),
    ],
)
def test_what_is_wrong_with_java_home_is_told(tmp_path: Path, kind: str, said: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    make_java(tmp_path / "dumb", None)
    make_java(tmp_path / "old", "11.0.20")
    make_java(tmp_path / "cut", "17.0.9", rest='MODULES="java.base java.sql"\n')
    home = str(tmp_path / kind)
    assert find_java.wrong_home((17, 21), {"JAVA_HOME": home}) == f"JAVA_HOME is {home}, {said}"


def test_nothing_is_wrong_with_a_java_home_that_will_do_or_with_none(tmp_path: Path) -> None:
    make_java(tmp_path / "right", "17.0.9")
    for environ in ({}, {"JAVA_HOME": " "}, {"JAVA_HOME": str(tmp_path / "right")}):
        assert find_java.wrong_home((17, 21), environ) is None


def test_only_wrong_ones_are_listed_with_path_and_version(tmp_path: Path) -> None:
    old = make_java(tmp_path / "chosen", "1.8.0_392")
    new = make_java(tmp_path / "usual" / "a", "25.0.3")
    make_java(tmp_path / "usual" / "broken", None)
    with pytest.raises(EngineError) as caught:
        search(tmp_path, JAVA_HOME=str(old))
    assert caught.value.message.splitlines()[1:] == [f"  {old} (Java 1.8.0_392)", f"  {new} (Java 25.0.3)"]


def test_a_release_file_that_is_no_text_is_passed_over(tmp_path: Path) -> None:
    home = make_java(tmp_path / "usual" / "a", None, script=answering(tmp_path / "usual" / "a", "21.0.4"))
    (home / "release").write_bytes(b"\xff\xfe\x00binary")
    assert search(tmp_path).version == "21.0.4"


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_392", 8), ("24-ea", 24), ("?", 0)]
)
def test_major_version(version: str, major: int) -> None:
    assert find_java.JavaInstallation(Path("/j"), version).major == major


def test_this_machine_has_one_that_starts() -> None:
    found = find_java.find_java((17, 21))
    assert find_java.inspect_java_home(found.home) == found
