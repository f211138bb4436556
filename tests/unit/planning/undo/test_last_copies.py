"""Which values depend on a snapshot after a rollback, and what keeps that snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from icemigrate.errors import IcemigrateError
from icemigrate.events import NoteAdded
from icemigrate.execution import run
from icemigrate.execution.last_copies import free_tags
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.needed_snapshots import snapshots_with_last_copies
from icemigrate.history.undo_record_codec import pack_undo, undo_to_json, unpack_undo
from icemigrate.iceberg.file_evidence_values import Evidence, RetainedValues, ValueShare
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import before_tag_names, is_icemigrate_tag
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Ref
from icemigrate.iceberg.undo_record import LastCopy, last_copies_of, merged_copies
from icemigrate.maintenance.retention_actions import needed_snapshot_reason
from icemigrate.planning.plan import Plan
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text
from icemigrate.planning.undo import MigrationUndo, UndoEnvironment, UndoOptions, plan_late_refill
from icemigrate.spark.append_snapshot import FOR_EVER_MS
from icemigrate.spark.engine_port import Marker
from tests.support.memory_lake import HISTORY, Lake

NAME = TableName(("db",), "t")
TAG = "icemigrate-market-0002-before"
CREATE = """
    tables:
      - name: db.t
        columns: [{name: id, type: int, required: true}, {name: c, type: string}]
        identifier: [id]
"""
DROP = "{allow: [destructive], tables: [{name: db.t, drop_columns: [c]}]}"
LOST = Evidence(
    held={2: ValueShare(0, 0, 3)}, kept={2: RetainedValues(TAG, ("c",), 3, 7, identifier={1: ("id",)})}
)
COPY = LastCopy(NAME, TAG, 7, (2,), 1000)
REFILLED = {
    "WHERE c IS NOT NULL) b": [(3, 3, 0)],
    "SELECT count(*), count(DISTINCT k0)": [(3, 3)],
    "SELECT count(*), count(c)": [(3, 3)],
}


@pytest.fixture
def lake() -> Lake:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.write(7)
    lake.apply("0002", DROP)
    lake.by_hand(lambda t: replace(t, refs={**t.refs, TAG: Ref("tag", 7, 1000)}))
    lake.write(8)
    return lake


def copies(lake: Lake) -> tuple[LastCopy, ...]:
    return last_copies_of(lake.record("0002"))


def test_a_rollback_records_what_it_leaves_and_keeps_its_tag_for_ever(lake: Lake) -> None:
    lake.rollback("0002", evidence=LOST)
    assert copies(lake) == (COPY,)
    (note,) = [e.text for e in lake.events if isinstance(e, NoteAdded)]
    assert note.startswith(
        f"{TAG} has values that no row has now: `icemigrate rollback --only 0002 --refill`"
    )
    assert lake.table().refs[TAG] == Ref("tag", 7, FOR_EVER_MS)


def test_values_that_no_tag_keeps_are_promised_until_their_snapshot_expires(lake: Lake) -> None:
    untagged = replace(LOST, kept={2: replace(LOST.kept[2], version="7")})
    lake.rollback("0002", evidence=untagged)
    assert copies(lake) == (replace(COPY, version="7", max_ref_age_ms=None),)
    (note,) = [e.text for e in lake.events if isinstance(e, NoteAdded)]
    assert note.startswith("snapshot 7 has values that no row has now")
    assert "restores them, until that snapshot expires, since no tag keeps it;" in note


def test_a_rollback_that_leaves_nothing_records_nothing(lake: Lake) -> None:
    lake.rollback("0002", evidence=Evidence(held={2: ValueShare(3, 0, 3)}))
    assert copies(lake) == ()
    assert lake.table().refs[TAG] == Ref("tag", 7, 1000)


def test_what_is_left_is_on_record_before_the_column_is_back(lake: Lake) -> None:
    lake.engine.catalog_name = "local"
    lake.engine.fails = {"commit db.t"}
    with pytest.raises(IcemigrateError):
        lake.rollback("0002", evidence=LOST)
    lake.engine.fails = set()
    lake.rollback("0002", evidence=LOST)
    assert copies(lake) == (COPY,)


def test_values_of_columns_that_nobody_asked_about_stay_on_record(lake: Lake) -> None:
    lake.rollback("0002", evidence=LOST)
    lake.apply("0002", "{tables: [{name: db.t, columns: [{name: d, type: int}]}]}")
    assert copies(lake) == (COPY,)
    lake.rollback("0002", evidence=Evidence(files=1))
    assert copies(lake) == (COPY,)
    assert lake.table().refs[TAG] == Ref("tag", 7, FOR_EVER_MS)


def test_a_refill_that_succeeds_ends_the_dependence(lake: Lake) -> None:
    lake.engine.catalog_name = "local"
    lake.engine.answers = REFILLED
    lake.rollback("0002", evidence=LOST, options=UndoOptions(refill=True))
    assert copies(lake) == ()
    assert lake.table().refs[TAG] == Ref("tag", 7, 1000)


def test_the_lock_names_the_tables_of_released_tags_when_the_intent_ends(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is paused in that commit and replaced is fenced, so it sets no age afterwards."""
    found = []

    def look(*given: Any) -> None:
        lock = HistoryWriter(lake.engine, HISTORY, "market").head().lock
        assert lock is not None
        found.append((lock.tables, lake.history.intents))
        free_tags(*given)

    monkeypatch.setattr(run, "free_tags", look)
    lake.engine.catalog_name = "local"
    lake.engine.answers = REFILLED
    lake.rollback("0002", evidence=LOST, options=UndoOptions(refill=True))
    assert found == [(("db.t",), ())]


@pytest.mark.parametrize("refill", [True, False])
def test_a_later_refill_ends_the_dependence_of_the_tables_that_it_is_planned_for(refill: bool) -> None:
    """The other table has its column dropped once more, and no row that a value could come back to."""
    lake, other = Lake(), TableName(("db",), "u")
    lake.engine.catalog_name = "local"
    lake.apply("0001", CREATE + CREATE.replace("tables:", "").replace("db.t", "db.u"))
    lake.write(7)
    lake.write(7, name="db.u")
    lake.apply("0002", DROP.replace("]}]}", "]}, {name: db.u, drop_columns: [c]}]}"))
    for name in ("db.t", "db.u"):
        lake.by_hand(lambda t: replace(t, refs={**t.refs, TAG: Ref("tag", 7, 1000)}), name)
        lake.write(8, name=name)
    lake.rollback("0002", evidence=LOST)
    assert copies(lake) == (COPY, replace(COPY, declared=other))
    lake.by_hand(lambda t: replace(t, schema=Schema(t.schema.fields[:1])), "db.u")

    lake.engine.answers = REFILLED
    undone = MigrationUndo("0002", "", "", lake.record("0002"), {NAME: LOST})
    tables = {name: t for name, t in lake.engine.tables.items() if name in (NAME, other)}
    place = UndoEnvironment("market", "local")
    migration = plan_late_refill(undone, lake.state, tables, place, UndoOptions(refill=refill))
    lake.run(Plan("market", "local", "sqlite", "local", (migration,), base=lake.state))
    assert copies(lake) == ((replace(COPY, declared=other),) if refill else ())


def test_a_refill_that_cannot_tell_rows_apart_leaves_the_dependence(lake: Lake) -> None:
    lake.engine.catalog_name = "local"
    lake.engine.answers = {"SELECT count(*), count(DISTINCT k0)": [(3, 2)]}
    lake.rollback("0002", evidence=LOST, options=UndoOptions(refill=True))
    assert copies(lake) == (COPY,)
    assert lake.table().refs[TAG] == Ref("tag", 7, FOR_EVER_MS)


def test_a_record_of_last_copies_is_of_a_format_that_an_older_icemigrate_refuses(lake: Lake) -> None:
    lake.rollback("0002", evidence=LOST)
    record = lake.record("0002")
    assert undo_to_json(record)["format"] == 3
    assert unpack_undo(pack_undo(record)) == record


def test_a_copy_that_is_found_again_keeps_the_age_limit_that_its_tag_had() -> None:
    again = replace(COPY, fields=(2, 4), max_ref_age_ms=FOR_EVER_MS)
    other = replace(COPY, version=f"{TAG}-2", snapshot_id=9)
    assert merged_copies([other, again], [COPY]) == (other, replace(COPY, fields=(2, 4)))


@pytest.mark.parametrize(
    ("needed", "refs", "tag"),
    [
        (set(), {TAG: 7}, TAG),  # nothing depends on it, so it moves
        ({TAG}, {TAG: 7}, f"{TAG}-2"),
        ({TAG}, {TAG: 9}, TAG),  # it is there already
        ({TAG}, {}, TAG),
        ({TAG}, {TAG: 7, f"{TAG}-2": 8}, f"{TAG}-2"),
        ({TAG, f"{TAG}-2"}, {TAG: 7, f"{TAG}-2": 8}, f"{TAG}-3"),
    ],
)
def test_a_tag_that_values_depend_on_does_not_move(needed: set[str], refs: dict[str, int], tag: str) -> None:
    marker = Marker("market", "0002", "d", "c", before=9, needed_tags=frozenset(needed))
    assert marker.before_tag(refs) == tag


def test_further_tags_of_a_migration_are_its_own_and_others_are_not() -> None:
    names = [
        TAG,
        f"{TAG}-2",
        f"{TAG}-10",
        f"{TAG}-02",
        f"{TAG}-x",
        "icemigrate-market-0003-before",
        f"{TAG}2",
    ]
    assert before_tag_names("market", "0002", names) == [f"{TAG}-10", f"{TAG}-2", TAG]
    assert all(map(is_icemigrate_tag, names[:3]))
    assert not is_icemigrate_tag(f"{TAG}-x")


def test_maintain_refuses_to_expire_a_snapshot_that_values_depend_on(lake: Lake) -> None:
    lake.rollback("0002", evidence=LOST)
    copies = snapshots_with_last_copies(lake.history)
    look = SimpleNamespace(snapshots_with_last_copies=lambda uuid: copies[uuid])
    why = needed_snapshot_reason(look, lake.table(), frozenset({7, 8}))  # type: ignore[arg-type]
    assert why == (
        "snapshot 7 has values that the rollback of 0002 left there: "
        "`icemigrate rollback --only 0002 --refill` restores them, `--no-refill` gives them up"
    )
    assert needed_snapshot_reason(look, lake.table(), frozenset({8})) is None  # type: ignore[arg-type]


def test_a_plan_that_leaves_values_is_saved_as_its_schema_says(lake: Lake) -> None:
    planned = lake.undo("0002", evidence=LOST)
    plan = Plan("market", "local", "sqlite", "local", planned.migrations, base=lake.state)
    text = plan_file_text(plan)
    assert parse_plan_file(text, "plan.json") == plan
    schema = json.loads(Path("schemas/plan.schema.json").read_text(encoding="utf-8"))
    table = json.loads(text)["migrations"][0]["tables"][0]
    assert table["last_copies"] == [
        {"declared": "db.t", "version": TAG, "snapshot_id": 7, "fields": [2], "max_ref_age_ms": 1000}
    ]
    jsonschema.validate(table, {"$ref": "#/$defs/table", "$defs": schema["$defs"]})
