"""What a plan rests on beside the facts that it changes, asked again when its turn comes."""

from __future__ import annotations

import pytest

from icemigrate.changes.expect_snapshot import ExpectSnapshot
from icemigrate.engine.rebase import facts, require_met
from icemigrate.errors import ConflictError, StalePlan
from icemigrate.executor.ground import changed_beside
from icemigrate.frozen import replace
from icemigrate.model.table import MAIN_BRANCH, Head, Ref, Snapshot, Table
from icemigrate.plan import PlannedChange, Step, TablePlan
from tests.build import NAME, table
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
    assert facts(now) == facts(DATES)
    with pytest.raises(ConflictError, match="`d` go from `date` to `timestamp`") as stopped:
        changed_beside(steps, {NAME: DATES}, now)
    assert stopped.value.message.startswith("on table `db.t` as it is now: the table has rows")
    assert stopped.value.hint == "`icemigrate plan` shows what is left to do"
    # One change of it does not fit any more: none of them is made.
    with pytest.raises(ConflictError):
        require_met(DATES, steps.all_steps, now)


def test_rows_that_change_nothing_for_a_plan_let_it_run() -> None:
    assert changed_beside(planned(DATES, PROMOTION), {NAME: DATES}, written(DATES, 0)) == ()
    harmless = planned(DATES, "columns: [{name: id, type: long}]")
    assert changed_beside(harmless, {NAME: DATES}, written(DATES)) == ()


def test_rows_on_a_branch_stop_a_column_that_becomes_required() -> None:
    before = table("a: long, b: long")
    steps = planned(before, "columns: [{name: b, required: true}]", "incompatible")
    head = Head(Snapshot(5, 0, 2), table("a: long").schema)
    now = replace(written(before), heads={"audit": head})
    now = replace(now, refs={**now.refs, "audit": Ref("branch", 5)})
    was = replace(now, heads={"audit": replace(head, snapshot=Snapshot(4, 0, 0))})
    assert facts(was) == facts(now)
    with pytest.raises(ConflictError, match="branch `audit`"):
        changed_beside(steps, {NAME: was}, now)
    # What the plan was made for, it was made in spite of.
    assert changed_beside(steps, {NAME: now}, now) == ()
    assert changed_beside(steps, {NAME: now}, replace(now, snapshot=Snapshot(8, 0, 4))) == ()


def test_files_that_nobody_has_looked_at_stop_an_undo() -> None:
    was = written(DATES)
    expect = ExpectSnapshot(NAME, 7)
    step = Step((PlannedChange(expect, expect.describe(), (), expect.reversal(was)),), ())
    require_met(was, [step], was)
    with pytest.raises(StalePlan, match="rows were written"):
        require_met(was, [step], replace(was, snapshot=Snapshot(8, 0, 4)))
