"""The folder of migrations: order, names, doubles, and everything else that may lie in it."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.errors import ExitCode, IcemigrateError
from icemigrate.files.migration_folder import AppliedFile, list_migrations, load_migrations
from icemigrate.files.parse.source_text import decode_source
from icemigrate.files.read import for_each
from icemigrate.files.read.migration_file import UnreadFile

SOUND = "tables: [{name: m.t}]\n"


def folder(root: Path, *names: str, text: str = SOUND) -> Path:
    for name in names:
        path = root / "migrations" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "migrations"


def codes(path: Path) -> list[tuple[str, str]]:
    return [(one.place.file, one.code) for one in load_migrations(path).diagnostics if one.place is not None]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    path = folder(tmp_path, "10_ten.yaml", "9_nine.yml", "0001_one_and_more.yaml", "20261127203700_late.yaml")
    loaded = load_migrations(path)
    assert [(one.version.text, one.name, one.path) for one in loaded.migrations] == [
        ("0001", "one_and_more", "migrations/0001_one_and_more.yaml"),
        ("9", "nine", "migrations/9_nine.yml"),
        ("10", "ten", "migrations/10_ten.yaml"),
        ("20261127203700", "late", "migrations/20261127203700_late.yaml"),
    ]
    assert loaded.diagnostics == ()
    assert loaded.broken == ()


def test_every_file_is_read_even_when_others_are_broken(tmp_path: Path) -> None:
    path = folder(tmp_path, "1_a.yaml", "3_c.yaml", "5_e.yaml")
    (path / "2_b.yaml").write_text("tabels: []\n")
    (path / "4_d.yaml").write_bytes(b"\xff\xfe")
    loaded = load_migrations(path)
    assert [one.version.number for one in loaded.migrations] == [1, 3, 5]
    assert [one.number for one in loaded.broken] == [2, 4]
    assert codes(path) == [("migrations/2_b.yaml", "unknown-key"), ("migrations/4_d.yaml", "not-utf8")]


def test_a_version_taken_twice(tmp_path: Path) -> None:
    path = folder(tmp_path, "0003_a.yaml", "3_b.yaml")
    loaded = load_migrations(path)
    assert [one.name for one in loaded.migrations] == ["a"]
    (told,) = loaded.diagnostics
    assert (str(told.place), told.code) == ("migrations/3_b.yaml:1:1", "duplicate-version")
    assert told.message == "`0003_a.yaml` already has version 3"


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        ("rename.yaml", "misnamed-file", "give it the next version"),
        ("V3__rename volume.yaml", "misnamed-file", "for example `0003_rename_volume.yaml`"),
        ("0003-rename.yml", "misnamed-file", "for example `0003_rename.yaml`"),
        ("0003.yaml", "misnamed-file", "for example `0003_name.yaml`"),
        ("0003_.yaml", "misnamed-file", "for example `0003_name.yaml`"),
        ("0003_rename.YAML", "misnamed-file", "for example `0003_rename.yaml`"),
        ("1234567890123456789_x.yaml", "misnamed-file", "give it the next version"),
        ("\u0663_x.yaml", "misnamed-file", "give it the next version"),
        ("0003_rename.json", "wrong-extension", None),
        ("0003_rename.yaml.bak", "wrong-extension", None),
        ("more/0003_rename.yaml", "folder-not-read", "move its files to the migrations folder"),
    ],
)
def test_files_that_were_meant_to_be_migrations(
    tmp_path: Path, name: str, code: str, hint: str | None
) -> None:
    (told,) = load_migrations(folder(tmp_path, name)).diagnostics
    assert (told.code, told.hint) == (code, hint)
    assert told.place is not None
    assert told.place.file == f"migrations/{name.split('/')[0]}"


@pytest.mark.parametrize(
    ("character", "severity"),
    [
        ("\u202e", Severity.ERROR),
        ("\x1b", Severity.WARNING),
        ("\t", Severity.WARNING),
        ("\u200b", Severity.WARNING),
    ],
)
def test_a_hidden_character_in_the_name_of_a_file_is_reported(
    tmp_path: Path, character: str, severity: Severity
) -> None:
    (tmp_path / f"0001_a{character}b.yaml").write_text("tables: []\n")
    (found,) = (d for d in load_migrations(tmp_path).diagnostics if d.code == "hidden-character")
    assert found.severity is severity
    assert found.message == f"the name of the file contains an invisible character: U+{ord(character):04X}"


def test_files_that_were_not(tmp_path: Path) -> None:
    path = folder(
        tmp_path, "1_a.yaml", "README.md", ".hidden.yaml", "1_a.yaml~", "notes/a.txt", "__pycache__/a.yaml"
    )
    loaded = load_migrations(path)
    assert len(loaded.migrations) == 1
    assert loaded.diagnostics == ()


def test_a_folder_named_like_a_migration(tmp_path: Path) -> None:
    path = folder(tmp_path, "1_a.yaml/x.txt")
    assert codes(path) == [("migrations/1_a.yaml", "folder-not-read")]


def test_a_folder_inside_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path, "1_a.yaml", "secret/2_b.yaml")
    listdir = os.listdir

    def refused(listed: Path) -> list[str]:
        if listed.name == "secret":
            raise PermissionError(13, "Permission denied")
        return listdir(listed)

    monkeypatch.setattr(os, "listdir", refused)
    assert load_migrations(path).diagnostics == ()


def test_a_link_to_nothing(tmp_path: Path) -> None:
    path = folder(tmp_path, "1_a.yaml")
    (path / "2_b.yaml").symlink_to("nowhere")
    assert codes(path) == [("migrations/2_b.yaml", "unreadable-file")]


@pytest.mark.parametrize("name", ["migrations/2_b.yaml", "migrations/icemigrate.lock", "icemigrate.yaml"])
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "device"])
def test_what_is_no_regular_file_is_not_waited_for(
    name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(tmp_path, "1_a.yaml", text="tables: [{name: m.t, columns: [{name: id, type: long}]}]\n")
    expected = "the file cannot be read: it is not a regular file [unreadable-file]"
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    elif kind == "link to a pipe":
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / name).symlink_to(tmp_path / "pipe")
    else:
        (tmp_path / name).symlink_to("/dev/zero")
        expected = "the file is not read: it leads out of the repository [outside-repository]"
    assert main(["check"]) == ExitCode.FINDINGS
    shown = capsys.readouterr()
    assert f"{name}:1:1: error: {expected}" in shown.out + shown.err


def test_a_saved_plan_that_is_a_pipe_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(tmp_path, "1_a.yaml")
    os.mkfifo(tmp_path / "plan.json")
    assert main(["apply", "plan.json"]) == ExitCode.ERROR
    assert "`plan.json` cannot be read: it is not a regular file" in capsys.readouterr().err


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    (told,) = load_migrations(tmp_path / "migrations").diagnostics
    assert (told.code, told.severity) == ("no-migrations", Severity.WARNING)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(IcemigrateError, match="`migrations` does not exist") as raised:
        list_migrations(tmp_path / "migrations")
    assert raised.value.exit_code is ExitCode.ERROR
    assert raised.value.hint is not None


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "migrations").write_text("")
    with pytest.raises(IcemigrateError, match="`migrations` cannot be read: not a directory"):
        list_migrations(tmp_path / "migrations")


def test_the_collector_is_left_as_it_was(tmp_path: Path) -> None:
    path = folder(tmp_path, "1_a.yaml")
    assert gc.isenabled()
    load_migrations(path)
    assert gc.isenabled()
    gc.disable()
    try:
        load_migrations(path)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_file_with_the_bytes_that_were_applied_is_not_read(tmp_path: Path) -> None:
    path = folder(tmp_path, "1_a.yaml", "2_b.yaml")
    first, _ = load_migrations(path).migrations
    known = {1: AppliedFile(first.fingerprint, first.checksum, "A table")}
    loaded = load_migrations(path, known=known)
    assert [one.name for one in loaded.migrations] == ["b"]
    assert loaded.unread == (UnreadFile(first.version, first.path, "a", first.checksum, "A table"),)
    assert [one.name for one in loaded.files] == ["a", "b"]


@pytest.mark.parametrize("text", [SOUND + "# more\n", "tabels: []\n", SOUND.replace("\n", "\r\n")])
def test_a_file_with_other_bytes_is_read(tmp_path: Path, text: str) -> None:
    path = folder(tmp_path, "1_a.yaml")
    (first,) = load_migrations(path).migrations
    known = {1: AppliedFile(first.fingerprint, first.checksum, "A table")}
    (path / "1_a.yaml").write_bytes(text.encode())
    loaded = load_migrations(path, known=known)
    assert loaded.unread == ()
    assert len(loaded.migrations) + len(loaded.broken) == 1


def test_the_projects_lists_are_part_of_what_a_file_says(tmp_path: Path) -> None:
    text = 'tables: [{name: "${t}.a", for_each: {t: tenants}}]\n'
    path = folder(tmp_path, "1_a.yaml", text=text)
    (first,) = load_migrations(path, {"tenants": ("acme",)}).migrations
    known = {1: AppliedFile(first.fingerprint, first.checksum, "A table")}
    assert load_migrations(path, {"tenants": ("acme",)}, known).unread
    (read,) = load_migrations(path, {"tenants": ("acme", "globex")}, known).migrations
    assert read.checksum != first.checksum


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
def test_an_encoding_that_its_mark_tells_is_named(encoding: str) -> None:
    found = decode_source("tables: []".encode(encoding), "a.yaml")
    assert isinstance(found, Diagnostic)
    assert found.message == f"the file is {encoding}, not UTF-8"


def test_the_copies_of_all_files_together_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(for_each, "ALL_COPIES_LIMIT", 5)
    for number in (1, 2):
        text = f"tables: [{{name: 'db.t{number}_${{x}}', for_each: {{x: [a, b, c]}}, drop_columns: [id]}}]\n"
        (tmp_path / f"000{number}_a.yaml").write_text(text)
    told = load_migrations(tmp_path).diagnostics
    assert [(one.code, one.place.file if one.place else "") for one in told] == [
        ("too-many-tables", "0002_a.yaml")
    ]
    assert "all files expand to more than 5 tables" in told[0].message
