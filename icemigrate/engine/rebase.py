"""Whether a plan still applies to a table that somebody else has changed since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from icemigrate.changes.base import Change, Subject
from icemigrate.changes.expect_snapshot import ExpectSnapshot
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.publish_rows import PublishRows
from icemigrate.errors import ConflictError, StalePlan
from icemigrate.frozen import replace
from icemigrate.merge import merge, rebind
from icemigrate.model import legality
from icemigrate.model.names import format_path
from icemigrate.model.table import MAIN_BRANCH, Table
from icemigrate.plan import Step

PLAN_AGAIN = "`icemigrate plan` shows what is left to do"


def facts(table: Table) -> Table:
    """A table without its rows: what is equal before and after others have written."""
    refs = {
        name: replace(ref, snapshot_id=0) if ref.kind == "branch" else ref
        for name, ref in table.refs.items()
        if name != MAIN_BRANCH or ref.is_limited  # a first row makes the main branch
    }
    return replace(table, snapshot=None, refs=refs)


def require_untouched(planned: Table, steps: Sequence[Step], now: Table) -> None:
    """Refuse steps that were planned for another state of a table than the one it is in now.

    What others changed beside the steps' own difference is theirs and stays; so is a new id for a new field.

    :param planned: the table that the steps were planned for.
    :raises ConflictError: a fact that the steps change is something else now, or what they lead to is none.
    :raises StalePlan: a part of it is done already.
    """
    if planned.uuid is not None and now.uuid is not None and planned.uuid != now.uuid:
        raise ConflictError(f"table `{now.name}` is another table now, under the same name", PLAN_AGAIN)
    goal = _all(steps, planned)
    new = {f.id: -f.id for _, f in goal.schema.walk() if f.id > planned.last_column_id}
    merged = merge(planned, rebind(goal, new), now)
    if merged.conflicts:
        shown = "; ".join(f"{c.fact} is {c.actual} instead of {c.base}" for c in merged.conflicts)
        raise ConflictError(f"somebody else changed what this migration changes: {shown}", PLAN_AGAIN)
    if merged.done:
        raise StalePlan(f"somebody else has done a part of it: {', '.join(merged.done)}", PLAN_AGAIN)
    try:
        _all(steps, now)
    except (LookupError, AssertionError, StopIteration, ValueError) as error:
        # Steps were planned for what is not there any more, such as the column behind which one was to stand.
        raise ConflictError(f"the plan does not fit table `{now.name}` any more", PLAN_AGAIN) from error


def require_met(planned: Table, steps: Sequence[Step], now: Table) -> None:
    """Refuse steps for which something holds no more that held for the table that they were planned for.

    Rows are no fact that anything is merged by, but a change may rest on there being none: a commit that is
    tried again asks once more, of the very state that it is made on.

    :param now: a table that the steps fit, see :func:`require_untouched`.
    :raises ConflictError: a change, or what the steps lead to, is not allowed on the table as it is now.
    :raises StalePlan: rows were written to a table whose files had been looked at.
    """
    if (planned, planned.heads) == (now, now.heads):
        return
    against = dict(_objections(steps, now))
    if not against:
        return
    known = dict(_objections(steps, planned))
    new = dict.fromkeys(message for key, message in against.items() if key not in known)
    if new:
        raise ConflictError(f"on table `{now.name}` as it is now: {'; '.join(new)}", PLAN_AGAIN)


def rests_on_rows(steps: Sequence[Step]) -> bool:
    """Whether a commit must find main as it was when it was looked at."""
    return any(
        isinstance(c, (ExpectSnapshot, MakeRequired)) or (isinstance(c, PublishRows) and c.rows is None)
        for c in _changes(steps)
    )


def require_asked(looked_at: Table, steps: Sequence[Step], now: Table) -> None:
    """Refuse to make a column required over rows that came since all were asked for a value of it.

    :param looked_at: the table as it was when its rows were asked.
    :raises ConflictError: there are such rows.
    """
    changes = [*_changes(steps)]
    required = [format_path(c.path) for c in changes if isinstance(c, MakeRequired)]
    is_moved = now.snapshot_id not in (None, looked_at.snapshot_id)
    if required and is_moved and not any(isinstance(c, (ExpectSnapshot, PublishRows)) for c in changes):
        names = ", ".join(f"`{name}`" for name in required)
        raise ConflictError(
            f"rows were written to `{now.name}` meanwhile, and nobody has asked them for a value of {names}, "
            f"which {'becomes' if len(required) == 1 else 'become'} required",
            "run it again: these rows are asked too",
        )


def _objections(steps: Sequence[Step], table: Table) -> Iterator[tuple[tuple[str, Subject], str]]:
    """What the changes and the table that they lead to have against it, by rule and by what it is about."""
    before = table
    for change in _changes(steps):
        for problem in change.problems(table):
            yield (problem.rule, problem.subject), problem.message
        table = change.apply(table)
    for breach in legality.problems(table, before):
        if not breach.is_warning:
            yield (breach.rule, breach.subject), breach.message


def _all(steps: Sequence[Step], table: Table) -> Table:
    return reduce(lambda t, change: change.apply(t), _changes(steps), table)


def _changes(steps: Sequence[Step]) -> Iterator[Change]:
    return (planned.change for step in steps for planned in step.changes)
