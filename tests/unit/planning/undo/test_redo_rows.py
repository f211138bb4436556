"""What readers wrote to a column before its migration was rolled back is not overwritten unasked.

A column that comes back, redone or restored, has values in files: filling it needs consent and is undone by
the rows' snapshot.
"""

from __future__ import annotations

import pytest

from icemigrate.data_steps.data_step_kind import DataStepContext
from icemigrate.data_steps.retype import Retype
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan import TablePlan
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.redo import blocked_recorded_fields, never_assigned, with_recorded_ids
from icemigrate.planning.table_plan import plan_table
from tests.support.memory_lake import Lake
from tests.support.replayed_migrations import replay_text

NAME = TableName.parse("db.t")
CREATE = (
    "{tables: [{name: db.t, columns: [{name: id, type: int}, {name: zip, type: int}, "
    '{name: s, type: "struct<a: int>"}]}]}'
)


def entry(text: str) -> str:
    return f"{{allow: [destructive], tables: [{{name: db.t, {text}}}]}}"


def lake_with(*migrations: str) -> Lake:
    lake = Lake()
    lake.engine.answers["IS NOT NULL AND"] = [(0,)]
    lake.apply("0001", CREATE)
    lake.write(7)
    for number, text in enumerate(migrations, 2):
        lake.apply(f"{number:04}", entry(text))
    return lake


def planned(lake: Lake, text: str, redo: str | None = None, begun: frozenset[str] = frozenset()) -> TablePlan:
    base = lake.state.tables[NAME]
    (wanted,) = replay_text(entry(text), lake.state).wanted
    if redo is not None:
        wanted = with_recorded_ids(wanted, lake.record(redo), base)
    around = PlanningContext("market", "local", begun=begun)
    found = plan_table(wanted, base, lake.engine.tables, redo or "0009", frozenset(), around)
    assert found.problems == ()
    return found.plan


def reasons(plan: TablePlan) -> list[str]:
    return [hazard.reason for work in plan.rows for hazard in work.hazards]


FILLED = "columns: [{name: currency, type: string}], backfill: [{set: {currency: \"'EUR'\"}}]"
OVERWRITTEN = "overwrites restored values of {}; add the condition {} is null to keep them"


def test_a_fill_of_a_new_column_overwrites_nothing() -> None:
    plan = planned(lake_with(), FILLED)
    assert reasons(plan) == []
    assert not plan.rows[0].overwrites


@pytest.mark.parametrize("begun", [frozenset[str](), frozenset({"0002"})])
def test_a_fill_that_is_redone_overwrites_what_was_written_before_the_rollback(begun: frozenset[str]) -> None:
    lake = lake_with(FILLED)
    lake.write(8)
    lake.rollback("0002")
    plan = planned(lake, FILLED, "0002", begun)
    assert reasons(plan) == [OVERWRITTEN.format("currency", "currency")]
    (work,) = plan.rows
    assert work.overwrites
    assert work.reversal.reason == "no row is written after it and the snapshot before it has not expired"

    kind = planned(lake, FILLED.replace("}}]", "}, where: currency is null}]"), "0002", begun)
    assert reasons(kind) == []
    assert kind.rows[0].overwrites


@pytest.mark.parametrize(
    ("before", "text", "filled"),
    [
        ("drop_columns: [zip]", "restore_columns: [zip], backfill: [{set: {zip: 1}}]", "zip"),
        (
            "drop_columns: [s.a], columns: [{name: s.b, type: int}]",
            "restore_columns: [s.a], backfill: [{set: {s.a: 1}}]",
            "s.a",
        ),
        (
            "drop_columns: [zip]",
            "restore_columns: [{name: zip, refill: true}], backfill: [{set: {zip: 1}}]",
            "zip",
        ),
        ("renames: {zip: code}", "renames: {code: zip}, backfill: [{set: {zip: 1}}]", None),
        ("drop_columns: [zip]", "columns: [{name: zip, type: int}], backfill: [{set: {zip: 1}}]", ""),
    ],
)
def test_a_column_that_is_restored_and_filled_loses_its_values(
    before: str, text: str, filled: str | None
) -> None:
    plan = planned(lake_with(before), text)
    if filled is None:  # it was there all the while
        assert reasons(plan) == ["overwrites existing values of zip"]
    elif filled:
        assert OVERWRITTEN.format(filled, filled) in reasons(plan)
    else:  # another field under the name of a dropped one
        assert reasons(plan) == []
    assert plan.rows[0].overwrites is (filled != "")


RETYPED = "retype: {zip: {to: string, using: cast(zip as string)}}"
WHERE = " WHERE (zip IS NOT NULL OR zip__icemigrate IS NULL)"


@pytest.mark.parametrize("begun", [frozenset[str](), frozenset({"0002"})])
def test_a_retype_that_is_redone_keeps_what_was_written_to_the_new_column_alone(
    begun: frozenset[str],
) -> None:
    first = planned(lake_with(), RETYPED).rows[0].statements[0].text
    assert first.endswith("SET zip__icemigrate = cast(zip as string)")
    lake = lake_with(RETYPED)
    lake.write(8)
    lake.rollback("0002")
    (work,) = planned(lake, RETYPED, "0002", begun).rows
    assert work.statements[0].text == f"{first}{WHERE}".replace("0009", "0002")
    assert work.text.endswith("; where the old column is null, values written as string are kept")
    # Made anew, since it is of another type now: nothing can be read of what was written.
    (other,) = planned(lake, RETYPED.replace("string", "date"), "0002", begun).rows
    assert " WHERE " not in other.statements[0].text


def test_a_redone_retype_shows_the_column_under_its_own_name() -> None:
    lake = lake_with(RETYPED)
    new = lake.table().schema.find(("zip",))
    assert new is not None
    lake.rollback("0002")
    shown = [
        change.change.describe() for step in planned(lake, RETYPED, "0002").steps for change in step.changes
    ]
    assert shown == [
        f"zip string, under its own field id {new.id}, as `zip__icemigrate` until `retype` has filled it, "
        "after zip"
    ]


def test_an_id_that_the_killed_first_run_never_assigned_is_not_restored() -> None:
    """The undo record is written before the first change, with the ids that the catalog was to assign."""
    before = lake_with()
    record = lake_with(RETYPED).record("0002")
    (wanted,) = replay_text(entry(RETYPED), before.state).wanted
    assert set(never_assigned(wanted, record, before.table())) == {5}
    assert set(never_assigned(wanted, record, lake_with(RETYPED).table())) == set()


PARTITIONED = f"{RETYPED}, partition_by: [zip]"


@pytest.mark.parametrize(
    ("text", "is_barred"),
    [(PARTITIONED, True), (f"{RETYPED}, partition_by: [zip as code]", False), (RETYPED, False)],
)
def test_a_column_that_was_partitioned_by_under_its_name_comes_back_to_no_other_of_that_name(
    text: str, is_barred: bool
) -> None:
    lake = lake_with(text)
    new = lake.table().schema.find(("zip",))
    assert new is not None
    lake.rollback("0002")
    (wanted,) = replay_text(entry(text), lake.state).wanted
    found = dict(blocked_recorded_fields(wanted, lake.record("0002"), lake.table()))
    assert [work.column for work in found.values()] == ["zip"] * is_barred
    fitted = with_recorded_ids(wanted, lake.record("0002"), lake.state.tables[NAME], found)
    assert fitted.table is not None
    again = fitted.table.schema.find(("zip",))
    assert again is not None
    assert (again.id == new.id, again.id < 0) == (not is_barred, is_barred)


def test_a_field_of_a_struct_that_is_redone_makes_no_struct() -> None:
    work = Retype("s.a", "1", "string", 3, keeps=True)
    assert work.statements("t")[0].text == (
        "UPDATE t SET s.a__icemigrate = 1 "
        "WHERE s IS NOT NULL AND (s.a IS NOT NULL OR s.a__icemigrate IS NULL)"
    )


def test_a_column_is_old_or_comes_back_by_its_id() -> None:
    table = lake_with().table()
    ground = DataStepContext(NAME, table, frozenset({1}), frozenset({2}))
    assert [
        (ground.had_values_before((n,)), ground.is_restored_column((n,))) for n in ("id", "zip", "s", "x")
    ] == [
        (True, False),
        (True, True),
        (False, False),
        (False, False),
    ]
