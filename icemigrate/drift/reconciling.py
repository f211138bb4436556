"""The way back from what others did: an undo of theirs, as if it had been a migration; pure.

What is recorded is before it and the catalog is after it, so everything that an undo knows serves here too:
what was added and declared by nobody stays, a dropped column comes back under its own field id, and what
would lose something is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from icemigrate.changes.base import Problem, Subject
from icemigrate.drift.facts import compare, is_expired
from icemigrate.drift.values import Machines, as_declared, nobody
from icemigrate.frozen import Frozen, replace
from icemigrate.model.locations import normal
from icemigrate.model.names import TableName
from icemigrate.model.table import CURRENT_SNAPSHOT, Ref, Snapshot, Table
from icemigrate.model.undo_record import TableUndo
from icemigrate.undo import Sides, inverse


class WayBack(Frozen):
    """What is to be undone of one table.

    :param problems: what cannot go back, whatever is consented to.
    :param notes: what is left as it is.
    """

    undo: TableUndo
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


class Known(Frozen):
    """What is known beside the two sides.

    :param name: the table's name in the catalog, as it should be.
    :param declared: what files would call a table of the name that it has.
    :param machines: what the catalog's server and its clients set by themselves.
    :param snapshots: ids of those that the table still has.
    :param then: the table's snapshot when it was recorded; ``None`` where nobody knows.
    """

    name: TableName
    declared: TableName
    machines: Machines = nobody
    snapshots: Collection[int] = ()
    then: Snapshot | None = None


def way_back(base: Table, there: Table, known: Known) -> WayBack | None:
    """What leads back from what is there to what is recorded; ``None`` where nothing has to.

    :param base: as recorded, under its declared name.
    :param there: the table in the catalog.
    """
    now = replace(as_declared(base, there, known.machines, foreign=False), name=known.declared)
    problems, notes = list[Problem](), list[str]()
    wanted, now = _references(base, now, known, problems, notes)
    problems += _location(base, there)
    differs = any(f.managed and not is_expired(f, base) for f in compare(base, there, known.machines))
    if not differs and now.name == base.name and not problems:
        return None
    target = inverse(Sides(wanted, now), there).target
    was = replace(target, name=known.name, snapshot=known.then)
    undo = TableUndo(base.name, now.name, wanted, now, was, there)
    return WayBack(undo, tuple(problems), tuple(notes))


def _references(
    base: Table, now: Table, known: Known, problems: list[Problem], notes: list[str]
) -> tuple[Table, Table]:
    """Both sides without the branches and tags that cannot, or need not, come back."""
    wanted, left = dict(base.refs), dict(now.refs)
    for name, ref in base.refs.items():
        there = now.refs.get(name)
        if there is not None and ref.kind == there.kind:
            if ref.snapshot_id == CURRENT_SNAPSHOT:
                continue
            if ref.snapshot_id != there.snapshot_id and ref.snapshot_id not in known.snapshots:
                problems.append(_gone(base, name, ref, f"its snapshot {ref.snapshot_id} has expired"))
                wanted[name] = left[name] = there
        elif there is None and ref.max_ref_age_ms is not None:
            notes.append(f"{ref.kind} {name} was to be kept for a time, and stays away")
            left[name] = ref
        elif there is None and ref.snapshot_id not in known.snapshots:
            expired = f"its snapshot {ref.snapshot_id} has expired"
            unknown = "nobody recorded which snapshot it was at"
            problems.append(
                _gone(base, name, ref, unknown if ref.snapshot_id == CURRENT_SNAPSHOT else expired)
            )
            left[name] = ref
    return replace(base, refs=wanted), replace(now, refs=left)


def _gone(base: Table, name: str, ref: Ref, why: str) -> Problem:
    subject: Subject = ("tags" if ref.kind == "tag" else "branches", name)
    message = f"{ref.kind} `{name}` of `{base.name}` cannot be as it was: {why}"
    return Problem("snapshot-expired", base.name, subject, message, _ACCEPT)


def _location(base: Table, there: Table) -> Iterator[Problem]:
    if base.location is None or there.location is None or normal(base.location) == normal(there.location):
        return
    message = f"`{base.name}` lies in {there.location} and not in {base.location}: its files cannot be moved"
    yield Problem("location", base.name, ("location",), message, _ACCEPT)


_ACCEPT = (
    "`drift --accept` declares what is there; leave the table out with `--table` to lead the others back"
)
