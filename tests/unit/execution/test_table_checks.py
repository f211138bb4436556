"""What a plan rests on beside the facts that it changes, asked again when its turn comes."""

from __future__ import annotations

import pytest

from icemigrate.changes.expect_snapshot import ExpectSnapshot
from icemigrate.errors import ConflictError, StalePlan
from icemigrate.execution.table_checks import foreign_changes
from icemigrate.frozen import replace
from icemigrate.iceberg.table import MAIN_BRANCH, BranchHead, Ref, Snapshot, Table
from icemigrate.planning.plan import PlannedChange, Step, TablePlan
from icemigrate.spark.conflict_check import require_preconditions, table_without_rows
from tests.support.small_tables import NAME, table
from tests.unit.test_reports import plan


def written(of: Table, rows: int = 3) -> Table:
    return replace(of, snapshot=Snapshot(7, 0, rows), refs={**of.refs, MAIN_BRANCH: Ref("branch", 7)})


def planned(before: Table, text: str, allow: str = "") -> TablePlan:
    judged = plan(before, text, allow=allow)
    assert judged.plan is not None
    assert not judged.plan.problems
    return judged.table


DATES = table("id: int, d: date", format_version=3)
PROMOTION = "columns: [{name: d, type: timestamp}, {name: x, type: int}]"


def test_rows_that_a_change_cannot_have_are_no_fact_and_stop_it() -> None:
    steps = planned(DATES, PROMOTION)
    now = written(DATES)
    assert table_without_rows(now) == table_without_rows(DATES)
    with pytest.raises(ConflictError, match="the change of `d` from `date` to `timestamp`") as stopped:
        foreign_changes(steps, {NAME: DATES}, now)
    assert stopped.value.message.startswith("on table `db.t` as it is now: the table has rows")
    assert stopped.value.hint == "`icemigrate plan` shows what is left to do"
    # One change of it does not fit any more: none of them is made.
    with pytest.raises(ConflictError):
        require_preconditions(DATES, steps.all_steps, now)


def test_rows_that_change_nothing_for_a_plan_let_it_run() -> None:
    assert foreign_changes(planned(DATES, PROMOTION), {NAME: DATES}, written(DATES, 0)) == ()
    harmless = planned(DATES, "columns: [{name: id, type: long}]")
    assert foreign_changes(harmless, {NAME: DATES}, written(DATES)) == ()


def test_rows_on_a_branch_stop_a_column_that_becomes_required() -> None:
    before = table("a: long, b: long")
    steps = planned(before, "columns: [{name: b, required: true}]", "incompatible")
    head = BranchHead(Snapshot(5, 0, 2), table("a: long").schema)
    now = replace(written(before), heads={"audit": head})
    now = replace(now, refs={**now.refs, "audit": Ref("branch", 5)})
    was = replace(now, heads={"audit": replace(head, snapshot=Snapshot(4, 0, 0))})
    assert table_without_rows(was) == table_without_rows(now)
    with pytest.raises(ConflictError, match="branch `audit`"):
        foreign_changes(steps, {NAME: was}, now)
    # What the plan was made for, it was made in spite of.
    assert foreign_changes(steps, {NAME: now}, now) == ()
    assert foreign_changes(steps, {NAME: now}, replace(now, snapshot=Snapshot(8, 0, 4))) == ()


def test_files_that_nobody_has_looked_at_stop_an_undo() -> None:
    was = written(DATES)
    expect = ExpectSnapshot(NAME, 7)
    step = Step((PlannedChange(expect, expect.describe(), (), expect.reversal(was)),), ())
    require_preconditions(was, [step], was)
    with pytest.raises(StalePlan, match="rows were written"):
        require_preconditions(was, [step], replace(was, snapshot=Snapshot(8, 0, 4)))
