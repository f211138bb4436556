"""What ``status`` says where another client has a table under a name of the project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from icemigrate.catalog.sqlite_reader import SqliteCatalog
from icemigrate.commands.plan import plan
from icemigrate.commands.status import history, status
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.failures import Interrupted
from icemigrate.frozen import replace
from icemigrate.history.history_properties import encode_history
from icemigrate.history.undo_record_codec import pack_undo
from icemigrate.iceberg.file_evidence_values import Evidence, EvidenceQuery, ValueShare
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Snapshot
from icemigrate.iceberg.types import Primitive
from icemigrate.project import open_project
from icemigrate.render.formats import render
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.status_results import Status, TableStatus
from tests.support.embedded_project import HISTORY, Embedded, applied

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "status.schema.json").read_text("utf-8"))
THEIRS = "11111111-2222-3333-4444-555555555555"
T, U = TableName.parse("db.t"), TableName.parse("db.u")


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    made = Embedded(tmp_path)
    made.write("0001_make.yaml", "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n")
    made.apply()
    made.write("0002_rename.yaml", "tables: [{name: db.u, renamed_from: db.t}]\n")
    made.apply()
    return made


def tables(shop: Embedded) -> dict[str, TableStatus]:
    found = status(open_project(shop.folder))
    jsonschema.validate(json.loads(render(found, "json")), SCHEMA, format_checker=jsonschema.FormatChecker())
    return {t.table: t for t in found.tables}


def test_what_others_changed_is_pointed_to(shop: Embedded) -> None:
    assert "drift" not in render(status(open_project(shop.folder)))
    shop.edit("db.u", {"owner.team": "research"})
    assert not tables(shop)["db.u"].differs, "no file declared it"
    made = shop.engine.tables[U]
    column = replace(made.schema.fields[0], type=Primitive("long"))
    shop.engine.tables[U] = replace(made, schema=replace(made.schema, fields=(column,)))
    shop.save()
    assert tables(shop)["db.u"].differs
    text = render(status(open_project(shop.folder)))
    assert "db.u differs from the recorded state: `icemigrate drift` shows how." in text


def test_a_table_of_which_something_goes_on_is_not_told_to_differ(shop: Embedded) -> None:
    shop.write(
        "0003_more.yaml",
        "tables:\n"
        "  - {name: db.u, columns: [{name: a, type: long}]}\n"
        "  - {name: db.v, columns: [{name: a, type: int}]}\n",
    )
    # Neither can the second table be made nor the first one be led back.
    shop.engine.fails |= {"db.v", "commit"}
    with pytest.raises(Interrupted):
        shop.apply()
    shop.save()
    found = tables(shop)["db.u"]
    assert shop.engine.tables[U].schema.fields[0].type == Primitive("long")
    assert not found.differs
    (migration,) = [m for m in status(open_project(shop.folder)).migrations if m.state == "interrupted"]
    assert migration.applied_at is None
    assert migration.interruption is not None
    assert migration.interruption.startswith("`apply` by ")
    text = render(status(open_project(shop.folder)))
    assert "was interrupted; `icemigrate apply` finishes it, `icemigrate rollback` undoes it; " in text
    assert text.endswith("market in local: at 0002, 1 interrupted, nothing else pending.\n")
    (event,) = [e for e in history(open_project(shop.folder)).events if e.event == "interrupted"]
    assert event.action == "apply"
    assert " apply interrupted  0003 " in render(history(open_project(shop.folder)))


def test_many_tables_that_differ_are_told_in_a_line() -> None:
    rows = tuple(TableStatus(f"db.t{n}", f"db.t{n}", "0001", True, differs=True) for n in range(5))
    text = render(Status("market", "local", "sqlite:x", "0001", (), rows))
    assert "db.t0, db.t1, db.t2 and 2 more differ from the recorded state" in text


def test_a_plan_of_nothing_points_to_drift_where_anything_is_recorded(shop: Embedded, tmp_path: Path) -> None:
    assert "`icemigrate drift` shows" in render(plan(open_project(shop.folder)))
    empty = tmp_path / "empty"
    (empty / "migrations").mkdir(parents=True)
    assert "drift" not in render(plan(open_project(empty)))


def test_a_name_that_is_free_is_not_shown(shop: Embedded) -> None:
    assert {name: t.note for name, t in tables(shop).items()} == {"db.u": None}


def test_who_stands_under_an_old_name_is_shown(shop: Embedded) -> None:
    shop.engine.tables[T] = replace(shop.engine.tables[U], name=T, uuid=THEIRS, properties={})
    shop.save()
    theirs = tables(shop)["db.t"]
    assert (theirs.version, theirs.exists, theirs.ours) == (None, True, False)
    assert theirs.note is not None
    assert "cannot restore that name until this table is moved away" in theirs.note
    text = render(status(open_project(shop.folder)))
    assert "db.t: a table of this project had this name" in text
    assert "there, unmanaged" in text


def test_another_table_under_a_declared_name_is_shown(shop: Embedded) -> None:
    ours = shop.engine.tables[U].uuid
    shop.engine.tables[U] = replace(shop.engine.tables[U], uuid=THEIRS)
    shop.save()
    note = tables(shop)["db.u"].note
    assert note is not None
    assert note.startswith(f"it is a different table (uuid {THEIRS}) than the recorded one (uuid {ours})")
    assert "another table" in render(status(open_project(shop.folder)))


def test_tables_whose_history_was_lost_are_told_as_such(shop: Embedded) -> None:
    made = shop.engine.tables.pop(U)
    shop.engine.tables = {T: replace(made, name=T)}
    shop.save()
    found = tables(shop)["db.t"]
    assert (found.version, found.exists, found.ours) == (None, True, True)
    assert found.note is not None
    assert found.note.startswith(
        "`market/0001` of this project created it, but the history does not record it"
    )
    text = render(status(open_project(shop.folder)))
    assert "there, not in the history" in text
    assert "incomplete" not in text


def test_details_name_the_rollbacks_that_are_no_longer_possible(shop: Embedded) -> None:
    shop.write("0003_set.yaml", "tables: [{name: db.u, properties: {k: v}}]\n")
    shop.apply()
    drop = "allow: [destructive db.x]\nbecause: unused\ntables: [{name: db.x, drop: true}]\n"
    shop.write("0004_more.yaml", "tables: [{name: db.x, columns: [{name: a, type: int}]}]\n")
    shop.apply()
    shop.write("0005_drop.yaml", drop)
    shop.apply()
    project = open_project(shop.folder)
    assert [m.not_restorable for m in status(project, details=True).migrations] == [()] * 5
    # A migration changed rows, and the snapshot before it has expired; the trash was emptied.
    with open_environment(project, None) as world:
        history = world.history()
    version = next(a.version for a in history.applied if a.version.text == "0003")
    record = history.undo_record(version)
    assert record is not None
    (undo,) = record.tables
    assert undo.actual_before is not None
    before = replace(undo.actual_before, snapshot=Snapshot(5, 5))
    undo = replace(undo, rows_changed=True, actual_before=before)
    packed = {**history.undo, "0003": pack_undo(replace(record, tables=(undo,)))}
    properties = encode_history(replace(history, undo=packed))
    shop.engine.tables[HISTORY] = replace(shop.engine.tables[HISTORY], properties=properties)
    (trashed,) = [name for name in shop.engine.tables if name.namespace == ("icemigrate_trash",)]
    shop.drop(str(trashed))
    found = status(project, details=True)
    assert {m.version: m.not_restorable for m in found.migrations if m.not_restorable} == {
        "0003": (
            "the snapshot that `db.u` had before this migration has expired: `rollback` needs "
            "`--metadata-only`, which leaves its rows as they are",
        ),
        "0005": ("`db.x` is no longer in the trash: `rollback` cannot restore it",),
    }
    assert "0005: `db.x` is no longer in the trash" in render(found)
    short = status(project)
    assert all(m.not_restorable == () for m in short.migrations), "only on demand"
    assert "2 rollbacks cannot restore all values: `icemigrate status -v` shows them." in render(short)


@pytest.mark.parametrize(
    ("operations", "held", "reports"),
    [
        (("append", "append"), 0, 0),  # no file was written again, so no manifest is read
        (("append", "replace"), 0, 1),
        (("append", "overwrite"), 1, 1),
        (("append", "replace"), 2, 0),  # the third row is newer
    ],
)
def test_values_that_a_compaction_removed_are_reported(
    shop: Embedded,
    monkeypatch: pytest.MonkeyPatch,
    operations: tuple[str, ...],
    held: int,
    reports: int,
) -> None:
    shop.write("0003_add.yaml", "tables: [{name: db.u, columns: [{name: q, type: int}]}]\n")
    shop.apply()
    shop.engine.tables[U] = replace(shop.engine.tables[U], snapshot=Snapshot(1, 1, 2))
    shop.save()
    drop = "allow: [destructive]\nbecause: x\ntables: [{name: db.u, drop_columns: [q]}]\n"
    shop.write("0004_drop.yaml", drop)
    shop.apply()
    project = open_project(shop.folder)
    read = SqliteCatalog.metadata_json

    def compacted(catalog: SqliteCatalog, name: TableName) -> dict[str, Any] | None:
        metadata = read(catalog, name)
        if metadata is None or name != U:
            return metadata
        snapshots = [
            {
                "snapshot-id": i,
                "parent-snapshot-id": i - 1 or None,
                "timestamp-ms": i,
                "summary": {"operation": o},
            }
            for i, o in enumerate(("append", *operations), start=1)
        ]
        return {**metadata, "snapshots": snapshots, "current-snapshot-id": len(snapshots), "refs": {}}

    def answer(*asked: Any) -> Evidence:
        query: EvidenceQuery = asked[-1]
        return Evidence(held={i: ValueShare(held, 0, 3) for i in query.held})

    monkeypatch.setattr(SqliteCatalog, "metadata_json", compacted)
    monkeypatch.setattr("icemigrate.spark.file_evidence.gather_without_jvm", answer)
    found = {m.version: m.not_restorable for m in status(project, details=True).migrations}
    share = f"{held} of 3 rows ({100 * held // 3} %)"
    text = f"`db.u`: values of q that are still in the files: {share}"
    assert found["0004"] == ((text,) if reports else ())
    line = "1 rollback cannot restore all values: `icemigrate status -v` shows it."
    assert (line in render(status(project))) == bool(reports)


def test_many_tables_in_the_same_state_are_one_row(tmp_path: Path) -> None:
    tables = ", ".join(f"{{name: db.t{n:02}, columns: [{{name: a, type: int}}]}}" for n in range(30))
    project = applied(tmp_path, f"tables: [{tables}]\n")
    shown = status(open_project(project.folder))
    assert "db.t00 and 29 more" in render(shown)
    assert "db.t29" in render(shown, style=TerminalStyle(False, details=True))
