"""Finds the snapshots that a migration pins branches and tags to."""

from __future__ import annotations

from icemigrate.changes.change import PlanProblem
from icemigrate.changes.reference_sql import reference_subject
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.snapshot_pins import UNKNOWN_SNAPSHOT, SnapshotLog, SnapshotPin, time_text
from icemigrate.iceberg.table import MAIN_BRANCH, Table

_NO_SNAPSHOTS = SnapshotLog({})


class _NotFound(Frozen):
    """Why a pin has no snapshot.

    :param rule: of the problem.
    """

    message: str
    hint: str
    rule: str = "no-such-snapshot"


def resolve_pins(
    goal: Table, base: Table | None, current: Table | None, declared: TableName, writes_rows: bool
) -> tuple[Table, tuple[PlanProblem, ...]]:
    """The target with the snapshots that its new pins mean, and a problem for each pin without one.

    :param base: the recorded table.
    :param current: the table in the catalog; ``None`` without a catalog, where they stay unknown.
    :param declared: its declared name.
    :param writes_rows: whether the migration writes rows of the table.
    """
    known = {} if base is None else base.pins
    refs, pins, problems = dict(goal.refs), dict(goal.pins), list[PlanProblem]()
    for name, pin in goal.pins.items():
        if known.get(name) == pin:
            continue
        before = known.get(name)
        if current is None and before is not None and replace(before, snapshot_id=None) == pin:
            pins[name] = before  # a branch may have moved since, which only the catalog shows
            continue
        found = _offline(pin) if current is None else _snapshot(pin, current, writes_rows)
        if isinstance(found, _NotFound):
            key = (*reference_subject(name, goal.refs[name].kind), pin.key)
            message = f"{goal.refs[name].kind} `{name}` cannot point to {pin.text}: {found.message}"
            problems.append(PlanProblem(found.rule, declared, key, message, found.hint))
        else:
            pins[name] = replace(pin, snapshot_id=found)
            refs[name] = replace(refs[name], snapshot_id=found)
    return replace(goal, refs=refs, pins=pins), tuple(problems)


def _offline(pin: SnapshotPin) -> int:
    return int(pin.value) if pin.key == "snapshot" else UNKNOWN_SNAPSHOT


def _snapshot(pin: SnapshotPin, current: Table, writes_rows: bool) -> int | _NotFound:
    log = current.snapshot_log or _NO_SNAPSHOTS
    if pin.key == "snapshot":
        found = int(pin.value)
        if found in log.times:
            return found
        hint = _HINT.format(f"{current.name}.snapshots")
        return _NotFound(f"table `{current.name}` has no such snapshot", hint)
    if pin.key == "as_of":
        return log.as_of(pin.value) or _before_the_first(current, log)
    if pin.value == MAIN_BRANCH and (writes_rows or log.is_outdated):
        return _NotFound(
            "this plan writes rows to it, whose snapshot does not exist yet",
            "pin the reference in a later migration, and apply the earlier ones first with `--to`",
            "pin-before-rows",
        )
    ref = current.refs.get(pin.value)
    if ref is not None and ref.kind == "branch":
        return ref.snapshot_id
    if pin.value == MAIN_BRANCH and current.snapshot is not None:
        return current.snapshot.id
    is_main = pin.value == MAIN_BRANCH
    why = "has no snapshot yet" if is_main else "has no such branch"
    return _NotFound(f"table `{current.name}` {why}", _HINT.format(f"{current.name}.refs"))


def _before_the_first(current: Table, log: SnapshotLog) -> _NotFound:
    if not log.entries:
        return _NotFound(f"table `{current.name}` has no snapshot yet", "write rows first")
    first = time_text(min(log.entries)[0])
    return _NotFound(
        f"the first snapshot that table `{current.name}` still has is of {first}",
        _HINT.format(f"{current.name}.history"),
    )


_HINT = "`SELECT * FROM {}` lists those that there are"
