"""The tables of each version, from undo records or from all files."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.commands.status import status
from icemigrate.errors import Mistakes
from icemigrate.execution.environment_session import open_environment
from icemigrate.files import migration_folder
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_reader import MigrationReadResult, read_migration
from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.project import open_project
from icemigrate.render.formats import render
from icemigrate.results.status_results import Status
from tests.support.embedded_project import Embedded, applied

_MAKE = """
tables:
  - {name: db.t, columns: [{name: a, type: int}]}
  - {name: db.gone, columns: [{name: a, type: int}]}
"""
_LATER = {
    "0002_rename.yaml": "tables: [{name: db.u, renamed_from: db.t}]\n",
    "0003_drop.yaml": "allow: [destructive]\ntables: [{name: db.gone, drop: true}]\n",
    "0004_again.yaml": "tables: [{name: db.t, columns: [{name: b, type: int}]}]\n",
}
_PENDING = {
    "0005_move.yaml": """
tables:
  - {name: db.v, renamed_from: db.u}
  - {name: db.w, columns: [{name: a, type: int}]}
""",
    "0006_all.yaml": "tables: [{match: 'db.*', properties: {a.b: c}}]\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    made = applied(tmp_path, _MAKE)
    for name, text in _LATER.items():
        made.write(name, text)
        made.apply()
    for name, text in _PENDING.items():
        made.write(name, text)
    return made


def _read(shop: Embedded, monkeypatch: pytest.MonkeyPatch) -> tuple[Status, list[str]]:
    """The status, and the versions whose files it parses."""
    parsed = list[str]()

    def noted(source: SourceText, *arguments: object) -> MigrationReadResult:
        parsed.append(Path(source.path).name[:4])
        return read_migration(source, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(migration_folder, "read_migration", noted)
    return status(open_project(shop.folder)), parsed


def _rows(found: Status) -> dict[str, tuple[str | None, tuple[str, ...]]]:
    return {row.table: (row.version, row.pending) for row in found.tables}


ROWS = {"db.t": ("0004", ("0006",)), "db.u": ("0002", ("0005", "0006")), "db.w": (None, ("0005", "0006"))}


def test_the_tables_of_applied_files_come_from_their_records(
    shop: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, parsed = _read(shop, monkeypatch)
    assert parsed == ["0005", "0006"]
    assert _rows(found) == ROWS


def _without_records(known: History) -> History:
    return replace(known, undo={}, bases={})


def _with_one_damaged(known: History) -> History:
    return replace(known, undo={**known.undo, "0002": "damaged"})


@pytest.mark.parametrize("change", [_without_records, _with_one_damaged])
def test_without_a_usable_record_all_files_are_planned(
    shop: Embedded, monkeypatch: pytest.MonkeyPatch, change: object
) -> None:
    project = open_project(shop.folder)
    with open_environment(project, None) as session:
        known = change(session.history())  # type: ignore[operator]
        session_type = type(session)
    monkeypatch.setattr(session_type, "history", lambda _self: known)
    found, parsed = _read(shop, monkeypatch)
    assert {"0001", "0002", "0003", "0004"} <= {*parsed}
    assert _rows(found) == ROWS


def test_an_edited_file_is_planned_with_the_files_before_it(
    shop: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.write("0002_rename.yaml", "tables: [{name: db.u, renamed_from: db.t, properties: {a.b: c}}]\n")
    found, parsed = _read(shop, monkeypatch)
    assert {"0001", "0002", "0003", "0004"} <= {*parsed}
    states = " ".join(m.state for m in found.migrations)
    assert states == "applied edited applied applied pending pending"
    assert _rows(found) == ROWS


def test_the_tables_of_a_missing_file_come_from_its_record(
    shop: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop.folder / "migrations" / "0002_rename.yaml").unlink()
    found, _ = _read(shop, monkeypatch)
    assert _rows(found) == ROWS
    assert "missing" in render(found)


def test_a_broken_pending_file_is_an_error(shop: Embedded) -> None:
    shop.write("0006_all.yaml", "tables: [{name: db.t, colums: []}]\n")
    with pytest.raises(Mistakes):
        status(open_project(shop.folder))
