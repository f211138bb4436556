"""Checks that a plan still applies to a table that another client changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from icemigrate.changes.change import Change, Subject
from icemigrate.changes.expect_snapshot import ExpectSnapshot
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.publish_rows import PublishRows
from icemigrate.errors import ConflictError, StalePlan
from icemigrate.frozen import replace
from icemigrate.iceberg import validation
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.table import MAIN_BRANCH, Table
from icemigrate.planning.merge import merge_tables, rebind_field_ids
from icemigrate.planning.plan import Step

PLAN_AGAIN = "`icemigrate plan` shows what is left to do"


def table_without_rows(table: Table) -> Table:
    """A table without its rows: the part that writes by others do not change."""
    refs = {
        name: replace(ref, snapshot_id=0) if ref.kind == "branch" else ref
        for name, ref in table.refs.items()
        if name != MAIN_BRANCH or ref.is_limited  # a first row makes the main branch
    }
    return replace(table, snapshot=None, refs=refs)


def require_no_conflict(planned: Table, steps: Sequence[Step], now: Table) -> None:
    """Refuse steps that were planned for another state of the table than its current one.

    Other changes by others stay; so does a new id for a new field.

    :param planned: the table that the steps were planned for.
    :raises ConflictError: a fact that the steps change has another value now, or their result is invalid.
    :raises StalePlan: a part of the steps is done already.
    """
    if planned.uuid is not None and now.uuid is not None and planned.uuid != now.uuid:
        raise ConflictError(f"another table now has the name `{now.name}`", PLAN_AGAIN)
    goal = _all(steps, planned)
    new = {f.id: -f.id for _, f in goal.schema.walk() if f.id > planned.last_column_id}
    merged = merge_tables(planned, rebind_field_ids(goal, new), now)
    if merged.conflicts:
        shown = "; ".join(f"{c.fact} is {c.actual} instead of {c.base}" for c in merged.conflicts)
        raise ConflictError(f"another client changed what this migration changes: {shown}", PLAN_AGAIN)
    if merged.done:
        raise StalePlan(
            f"another client already made some of these changes: {', '.join(map(str, merged.done))}",
            PLAN_AGAIN,
        )
    # Steps may refer to removed fields, such as the column after which one is placed.
    apply_fitting_changes(_changes(steps), now)


def apply_fitting_changes(changes: Iterable[Change], table: Table) -> Table:
    """The table after changes, each of which finds its object.

    :raises ConflictError: the object of a change does not exist.
    """
    for change in changes:
        if missing := ", ".join(change.lacks(table)):
            raise ConflictError(
                f"the plan does not fit table `{table.name}`, which has no {missing}: another client changed "
                "the table",
                PLAN_AGAIN,
            )
        table = change.apply(table)
    return table


def require_preconditions(planned: Table, steps: Sequence[Step], now: Table) -> None:
    """Refuse steps whose preconditions no longer hold.

    Rows are not facts that are merged, but a change may depend on the absence of rows: a commit that is
    retried checks them again, on the state that it is made on.

    :param now: a table that the steps fit, see :func:`require_no_conflict`.
    :raises ConflictError: a change, or the result of the steps, is not allowed on the current table.
    :raises StalePlan: rows were written to a table whose files were read for the plan.
    """
    if (planned, planned.heads) == (now, now.heads):
        return
    against = dict(_violations(steps, now))
    if not against:
        return
    known = dict(_violations(steps, planned))
    new = dict.fromkeys(message for key, message in against.items() if key not in known)
    if new:
        raise ConflictError(f"on table `{now.name}` as it is now: {'; '.join(new)}", PLAN_AGAIN)


def is_row_dependent(steps: Sequence[Step]) -> bool:
    """Whether a commit requires that main has not moved since it was read."""
    return any(
        isinstance(c, (ExpectSnapshot, MakeRequired)) or (isinstance(c, PublishRows) and c.rows is None)
        for c in _changes(steps)
    )


def require_checked_rows(looked_at: Table, steps: Sequence[Step], now: Table) -> None:
    """Refuse to make a column required if rows were written after the check for nulls.

    :param looked_at: the table when its rows were checked.
    :raises ConflictError: there are such rows.
    """
    changes = [*_changes(steps)]
    required = [format_path(c.path) for c in changes if isinstance(c, MakeRequired)]
    is_moved = now.snapshot_id not in (None, looked_at.snapshot_id)
    if required and is_moved and not any(isinstance(c, (ExpectSnapshot, PublishRows)) for c in changes):
        names = ", ".join(f"`{name}`" for name in required)
        raise ConflictError(
            f"rows were written to `{now.name}` after the check for nulls in {names}, "
            f"which {'becomes' if len(required) == 1 else 'become'} required",
            "run the command again to check these rows too",
        )


def _violations(steps: Sequence[Step], table: Table) -> Iterator[tuple[tuple[str, Subject], str]]:
    """Violations of the changes and of the resulting table, by rule and by subject."""
    before = table
    for change in _changes(steps):
        if missing := ", ".join(change.lacks(table)):
            yield ("plan-does-not-fit", change.subject), f"it has no {missing}"
            return
        for problem in change.problems(table):
            yield (problem.rule, problem.subject), problem.message
        table = change.apply(table)
    for violation in validation.find_violations(table, before):
        if not violation.is_warning:
            yield (violation.rule, violation.subject), violation.message


def _all(steps: Sequence[Step], table: Table) -> Table:
    return reduce(lambda t, change: change.apply(t), _changes(steps), table)


def _changes(steps: Sequence[Step]) -> Iterator[Change]:
    return (planned.change for step in steps for planned in step.changes)
