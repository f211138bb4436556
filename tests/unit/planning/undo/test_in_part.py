"""`rollback --partial`: what stands in the way of one change leaves that change; the rest is undone."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from icemigrate.execution.failures import Interrupted
from icemigrate.frozen import replace
from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.partitioning import PartitionField, SortField, Transform
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.planning.undo import UndoOptions
from tests.support.memory_lake import Lake, columns, notes, problems
from tests.support.recording_engine import RecordingEngine
from tests.unit.planning.undo.rows import plan_of

CREATE = """
tables:
  - name: db.t
    columns: [{name: a, type: int}, {name: b, type: string}, {name: c, type: string}]
    properties: {k: v}
"""
CHANGE = """
allow: [destructive]
tables:
  - name: db.t
    renames: {b: label}
    drop_columns: [c]
    columns: [{name: venue, type: string}, {name: rest, type: string}]
    properties: {k: w}
"""
PARTIAL = UndoOptions(partial=True)


@pytest.fixture
def lake() -> Lake:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.apply("0002", CHANGE)
    assert columns(lake.table()) == ["a#1", "label#2", "venue#4", "rest#5"]
    return lake


def with_column(name: str) -> object:
    def change(table: Table) -> Table:
        field = Field(40, name, Primitive("string"))
        schema = replace(table.schema, fields=(*table.schema.fields, field))
        return replace(table, schema=schema, last_column_id=40)

    return change


def stays(lake: Lake) -> tuple[str, ...]:
    """What the history says that the rollback in part has left."""
    (held,) = (a for a in lake.history.applied if a.version.text == "0002")
    assert held.state == "held"
    return held.remaining_effects


def test_a_renamed_column_keeps_its_name_where_another_one_has_the_old_one(lake: Lake) -> None:
    lake.by_hand(with_column("b"))  # type: ignore[arg-type]
    assert problems(lake.undo("0002"))
    planned = lake.rollback("0002", options=PARTIAL)
    assert sorted(columns(lake.table())) == ["a#1", "b#40", "c#3", "label#2"]
    assert lake.table().properties["k"] == "v"
    assert stays(lake) == ("db.t: the name label",)
    assert [n for n in notes(planned) if n.startswith("stays: the name label; ")]
    declared = lake.state.tables[lake.table().name]
    assert [f.name for f in declared.schema.fields] == ["a", "label", "c"]


def test_several_names_that_are_taken_stay_and_no_other(lake: Lake) -> None:
    lake.by_hand(with_column("B"))  # type: ignore[arg-type]
    lake.rollback("0002", options=PARTIAL)
    assert sorted(columns(lake.table())) == ["B#40", "a#1", "c#3", "label#2"]
    assert stays(lake) == ("db.t: the name label",)


def test_a_column_that_another_client_partitions_by_stays(lake: Lake) -> None:
    field = PartitionField((4,), Transform("identity"), "venue", 1000)
    lake.by_hand(lambda t: replace(t, spec=replace(t.spec, id=1, fields=(field,)), last_partition_id=1000))
    assert problems(lake.undo("0002"))
    lake.rollback("0002", options=PARTIAL)
    assert sorted(columns(lake.table())) == ["a#1", "b#2", "c#3", "venue#4"]
    assert [f.name for f in lake.table().spec.live] == ["venue"]
    assert stays(lake) == ("db.t: venue",)
    assert lake.state.tables[lake.table().name].schema.find(("venue",)) is not None


def test_a_column_that_another_client_sorts_by_stays(lake: Lake) -> None:
    field = SortField((4,), Transform("identity"), "asc", "nulls-first")
    lake.by_hand(lambda t: replace(t, sort_order=replace(t.sort_order, id=1, fields=(field,))))
    assert problems(lake.undo("0002"))
    lake.rollback("0002", options=PARTIAL)
    assert sorted(columns(lake.table())) == ["a#1", "b#2", "c#3", "venue#4"]
    assert len(lake.table().sort_order.fields) == 1
    assert stays(lake) == ("db.t: venue",)


def test_rows_that_cannot_go_back_stay_with_what_their_files_need(lake: Lake) -> None:
    lake.apply("0003", "{allow: [incompatible], tables: [{name: db.t, columns: [{name: a, type: long}]}]}")
    lake.write(8)
    undo = replace(lake.record("0003").tables[0], rows_changed=True)
    first = undo.actual_before
    assert first is not None
    newer = Evidence(files=1, rows=5, snapshots=1, existing_snapshots=frozenset({7}))
    undo = replace(undo, actual_before=replace(first, snapshot=None), actual_after=first)
    assert [p.rule for p in plan_of(lake, undo, newer, UndoOptions()).problems][:1] == ["newer-rows"]
    done = plan_of(lake, undo, newer, PARTIAL)
    assert done.problems == ()
    assert done.stays == ("the rows that it wrote", "the type of a")
    assert done.after.snapshot == lake.table().snapshot
    assert done.after.schema.fields == lake.table().schema.fields


def test_a_table_that_is_gone_is_left_and_the_others_are_undone(lake: Lake) -> None:
    del lake.engine.tables[lake.table().name]
    assert problems(lake.undo("0002")) == ["db.t:name"]
    lake.rollback("0002", options=PARTIAL)
    assert stays(lake) == ("db.t: table db.t",)


@pytest.mark.parametrize("ends", [False, True], ids=["interrupted", "applied"])
def test_the_undo_of_a_redo_still_names_what_the_rollback_left(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    lake.by_hand(with_column("b"))  # type: ignore[arg-type]
    lake.rollback("0002", options=PARTIAL)

    def stop(engine: RecordingEngine, text: str) -> None:
        raise KeyboardInterrupt

    redo = "{tables: [{name: db.t, columns: [{name: more, type: string}], properties: {k: w}}]}"
    with monkeypatch.context() as patch:
        if not ends:
            patch.setattr(RecordingEngine, "sql", stop)
        with nullcontext() if ends else pytest.raises(Interrupted):
            lake.apply("0002", redo)
    lake.rollback("0002")
    assert sorted(columns(lake.table())) == ["a#1", "b#40", "c#3", "label#2"]
    assert stays(lake) == ("db.t: the name label",)
