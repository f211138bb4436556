"""The class-data archive's place, its note, and who may make it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from icemigrate.spark.class_archive import VARIABLE, ClassArchive, archive_for, is_wanted, remove_old_archives


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    return ClassArchive(tmp_path / "cache" / "spark-1.jsa")


def sealed(archive: ClassArchive, content: bytes = b"x" * 200_000) -> ClassArchive:
    assert archive.claim()
    made = archive.path.with_suffix(".made")
    made.write_bytes(content)
    archive.seal(made)
    archive.lock.unlink()
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
    assert archive.claim()
    assert not archive.claim()


def test_the_claim_of_a_process_that_died_runs_out(archive: ClassArchive) -> None:
    assert archive.claim()
    os.utime(archive.lock, (0, 0))
    assert archive.claim()


def test_a_cache_that_cannot_be_written_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "spark-1.lock").mkdir()
    assert not ClassArchive(tmp_path / "cache" / "spark-1.jsa").claim()


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
