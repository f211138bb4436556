"""Changes in running order, and the proof that they lead to what was asked for."""

from __future__ import annotations

import pytest

from icemigrate.changes import CHANGE_KINDS
from icemigrate.frozen import replace
from icemigrate.iceberg.partitioning import SortField, SortOrder
from icemigrate.iceberg.table import Table
from icemigrate.planning.merge import merge_tables
from icemigrate.planning.table_difference import Difference, find_difference, remaining_differences
from tests.support.small_tables import field_at, spec_of, table, with_columns

BASE = table("id: required long, v: int, at: timestamp", partition="day(at)", sort="v")


def changes(before: Table, target: Table) -> list[str]:
    outcome = find_difference(before, target, CHANGE_KINDS)
    assert remaining_differences(outcome, CHANGE_KINDS) == ()
    return [f"{f.change.symbol} {f.change.describe()}" for f in outcome.found]


def test_nothing_to_do_is_no_change() -> None:
    assert changes(BASE, BASE) == []


def test_what_a_column_holds_back_goes_first_and_what_needs_it_goes_last() -> None:
    wanted = with_columns(BASE, "id: required long, w: string, at: timestamp")
    w = field_at(wanted.schema, "w").id
    wanted = replace(
        wanted,
        sort_order=SortOrder((SortField((w,)),)),
        spec=spec_of(wanted.schema, "w"),
        properties={"write.metadata.metrics.column.w": "full"},
    )
    assert changes(BASE, merge_tables(BASE, wanted, BASE).target) == [
        "~ stop sorting",
        "- stop partitioning by at_day",
        "- v int",
        "+ w string",
        "+ partition by w as w",
        "~ sort by w",
        "~ set write.metadata.metrics.column.w (unset → full)",
    ]


def test_a_column_made_anew_gets_a_new_id_even_behind_other_phases() -> None:
    wanted = with_columns(
        replace(BASE, schema=table("id: required long, at: timestamp").schema, spec=spec_of(BASE.schema, "")),
        "id: required long, v: int, at: timestamp",
    )
    base = replace(BASE, sort_order=SortOrder())
    kept = {"id": 1, "at": 3}
    fields = tuple(replace(f, id=kept.get(f.name, -1)) for f in wanted.schema.fields)
    wanted = replace(
        base, schema=replace(base.schema, fields=fields), spec=spec_of(BASE.schema, ""), format_version=3
    )
    outcome = find_difference(base, merge_tables(base, wanted, base).target, CHANGE_KINDS)
    assert remaining_differences(outcome, CHANGE_KINDS) == ()
    assert field_at(outcome.after.schema, "v").id == 4
    assert [f.change.kind for f in outcome.found][-2:] == ["drop_column", "add_column"]


@pytest.mark.parametrize(
    "left",
    [
        {"schema": table("id: required long").schema},
        {"properties": {"a": "b"}},
        {"sort_order": SortOrder()},
        {"spec": spec_of(BASE.schema, "")},
        {"format_version": 3},
        {"schema": table("id: required long, v: int, at: timestamp", identifier="id").schema},
    ],
)
def test_an_outcome_that_is_not_what_was_asked_for_is_not_proved(left: dict[str, object]) -> None:
    assert remaining_differences(Difference((), BASE, replace(BASE, **left)), CHANGE_KINDS)
