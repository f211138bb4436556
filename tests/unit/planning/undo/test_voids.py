"""Format version 1 keeps a partition field that goes as a void one, and that its source."""

from __future__ import annotations

import pytest

from icemigrate.iceberg.partitioning import VOID
from tests.support.memory_lake import Lake, columns, notes
from tests.support.planned_migrations import make_plan

CREATE = "tables: [{name: db.t, columns: [{name: a, type: int}], format_version: 1}]"
ADD = "tables: [{name: db.t, columns: [{name: venue, type: string}], partition_by: [venue]}]"


@pytest.fixture
def lake() -> Lake:
    lake = Lake()
    lake.apply("0001", CREATE)
    return lake


def test_a_column_that_was_added_to_partition_by_it_stays(lake: Lake) -> None:
    plan = make_plan({"0002": ADD}, lake.engine.tables, base=lake.state, namespaces=lake.engine.namespaces)
    reasons = [c.reversal.reason or "" for c in plan.migrations[0].changes()]
    assert any("so `venue` stays even if this migration adds it" in r for r in reasons)
    lake.apply("0002", ADD)
    planned = lake.rollback("0002")
    assert columns(lake.table()) == ["a#1", "venue#2"]
    assert lake.table().spec.live == ()
    assert [(f.transform, f.source_ids) for f in lake.table().spec.fields] == [(VOID, (2,))]
    assert columns(next(iter(lake.state.tables.values()))) == ["a#1"]
    assert notes(planned) == [
        "stays: venue; format version 1 keeps the partition field `venue` as a void one, and without its "
        "source no row could be written"
    ]


def test_the_column_is_found_again_when_the_version_is_applied_again(lake: Lake) -> None:
    lake.apply("0002", ADD)
    lake.rollback("0002")
    lake.apply("0002", ADD)
    assert columns(lake.table()) == ["a#1", "venue#2"]
    assert [f.source_ids for f in lake.table().spec.live] == [(2,)]


def test_a_required_column_stays_as_optional_and_in_its_place(lake: Lake) -> None:
    lake.apply(
        "0002",
        "{allow: [incompatible], tables: [{name: db.t, partition_by: [venue],"
        " columns: [{name: venue, type: string, required: true, first: true}]}]}",
    )
    lake.rollback("0002")
    assert columns(lake.table()) == ["venue#2", "a#1"]
    assert not lake.table().schema.fields[0].required


def test_other_columns_of_the_migration_go(lake: Lake) -> None:
    lake.apply("0002", ADD.replace("[{name: venue", "[{name: x, type: int}, {name: venue"))
    lake.rollback("0002")
    assert [f.name for f in lake.table().schema.fields] == ["a", "venue"]


def test_a_later_format_version_lets_it_go() -> None:
    lake = Lake()
    lake.apply("0001", CREATE.replace("format_version: 1", "format_version: 2"))
    lake.apply("0002", ADD)
    lake.rollback("0002")
    assert columns(lake.table()) == ["a#1"]
