"""The class-data archive's place, its note, and who may make it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from icemigrate.spark import session
from icemigrate.spark.class_archive import VARIABLE, ClassArchive, archive_for, is_wanted, remove_old_archives
from icemigrate.spark.find_java import JavaInstallation
from icemigrate.spark.jars import JarLocations
from icemigrate.spark.session_settings import SparkSettings


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    return ClassArchive(tmp_path / "cache" / "spark-1.jsa")


def sealed(archive: ClassArchive, content: bytes = b"x" * 200_000) -> ClassArchive:
    with archive.claim() as made:
        assert made is not None
        made.write_bytes(content)
        archive.seal(made)
    return archive


def test_an_archive_that_was_never_made_is_not_sound(archive: ClassArchive) -> None:
    assert not archive.is_intact()


def test_a_sealed_archive_is_sound_until_it_is_damaged(archive: ClassArchive) -> None:
    assert sealed(archive).is_intact()
    with archive.path.open("r+b") as file:
        file.truncate(100_000)
    assert not archive.is_intact()


@pytest.mark.parametrize("at", [0, 199_999])
def test_a_byte_changed_at_either_end_is_seen(archive: ClassArchive, at: int) -> None:
    sealed(archive)
    with archive.path.open("r+b") as file:
        file.seek(at)
        file.write(b"y")
    assert not archive.is_intact()


def test_a_note_that_is_no_json_makes_the_archive_unsound(archive: ClassArchive) -> None:
    sealed(archive).note.write_text("{", encoding="utf-8")
    assert not archive.is_intact()


def test_only_one_process_makes_it(archive: ClassArchive) -> None:
    with archive.claim() as first, archive.claim() as second:
        assert first is not None
        assert second is None
        os.utime(archive.lock, (0, 0))  # it may take any time
        with archive.claim() as third:
            assert third is None
    with archive.claim() as next_one:
        assert next_one is not None


def test_an_archive_that_another_process_made_meanwhile_is_kept(archive: ClassArchive) -> None:
    before = sealed(archive).path.read_bytes()
    with archive.claim() as made:
        assert made is None
    assert archive.is_intact()
    assert archive.path.read_bytes() == before


_CREATOR = """
import json, os, signal, sys
from pathlib import Path
from icemigrate.spark import class_archive_creator

def run(made, located):
    if "fails" not in sys.argv:
        made.write_bytes(os.urandom(200_000))
    sys.stdout.write("made\\n")
    sys.stdout.flush()
    sys.stdin.readline()

class_archive_creator._run = run
class_archive_creator.create_archive({"path": sys.argv[1], "jars": [], "on_class_path": []})
"""


def _creator(archive: ClassArchive, *words: str) -> subprocess.Popen[bytes]:
    """A process that creates the archive, and waits for a line before it seals it."""
    order = [sys.executable, "-c", _CREATOR, str(archive.path), *words]
    return subprocess.Popen(order, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_two_processes_at_once_leave_one_intact_archive(archive: ClassArchive) -> None:
    with _creator(archive) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"made\n"
        with _creator(archive) as second:
            out, _ = second.communicate(b"\n")
        assert (out, second.returncode) == (b"", 0)
        first.communicate(b"\n")
    assert first.returncode == 0
    assert archive.is_intact()
    assert not archive.unsealed.exists()


def test_the_lock_of_a_killed_process_is_released(archive: ClassArchive) -> None:
    with _creator(archive) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"made\n"
        first.kill()
    assert archive.unsealed.exists()
    sealed(archive)
    assert archive.is_intact()
    assert not archive.unsealed.exists()


def test_a_jvm_that_writes_no_archive_is_no_error(archive: ClassArchive) -> None:
    with _creator(archive, "fails") as only:
        only.communicate(b"\n")
    assert only.returncode == 0
    assert not archive.path.exists()


def test_a_cache_that_cannot_be_written_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "spark-1.lock").mkdir()
    with ClassArchive(tmp_path / "cache" / "spark-1.jsa").claim() as made:
        assert made is None


def test_another_jar_spark_java_or_flag_makes_another_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"1")
    first = archive_for(tmp_path, "17", "4.1.4", [jar], "-X")
    assert first == archive_for(tmp_path, "17", "4.1.4", [jar], "-X")
    assert first.path.parent == tmp_path / "icemigrate"
    others = {
        archive_for(tmp_path, "21", "4.1.4", [jar], "-X"),
        archive_for(tmp_path, "17", "4.1.5", [jar], "-X"),
        archive_for(tmp_path, "17", "4.1.4", [], "-X"),
        archive_for(tmp_path, "17", "4.1.4", [jar], "-Y"),
    }
    jar.write_bytes(b"22")
    others.add(archive_for(tmp_path, "17", "4.1.4", [jar], "-X"))
    assert len(others) == 5
    assert first not in others


def test_archives_that_nobody_used_for_long_are_swept(archive: ClassArchive) -> None:
    sealed(archive)
    old = sealed(ClassArchive(archive.path.with_name("spark-2.jsa")))
    os.utime(old.path, (0, 0))
    remove_old_archives(archive)
    assert archive.is_intact()
    assert not old.path.exists()
    assert not old.note.exists()


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    assert not is_wanted()
    monkeypatch.delenv(VARIABLE)
    assert is_wanted()


def test_each_installation_of_spark_has_its_own_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    found = JavaInstallation(tmp_path, "17.0.1")
    located, chosen = JarLocations(), list[ClassArchive | None]()
    homes = [tmp_path / "first", tmp_path / "second"]
    for home in homes:
        (home / "jars").mkdir(parents=True)
        (home / "jars" / "spark-core_2.13-4.1.4.jar").touch()
    for home in (*homes, homes[0]):
        monkeypatch.setenv("SPARK_HOME", str(home))
        chosen.append(session._archive(SparkSettings("local", {}), located, found, "4.1.4"))
    assert None not in chosen
    assert chosen[0] != chosen[1]
    assert chosen[0] == chosen[2]
