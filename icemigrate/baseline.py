"""Migrations recorded as done already: the catalog is held against what they lead to, and stays; pure.

Each version is recorded with the tables as declared at it, under the field ids that the catalog has now.  A
field that a later version took away again has none any more, and keeps the negative one of its declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.changes.base import Problem
from icemigrate.diff import Found
from icemigrate.frozen import Frozen, replace
from icemigrate.merge import UNKNOWN_BASE, Conflict, adopted, align, merge, rebind
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import Schema, index, siblings
from icemigrate.model.sides import State, Wanted
from icemigrate.model.table import Table
from icemigrate.plan import MigrationPlan, TablePlan
from icemigrate.plan_case import Surroundings
from icemigrate.planner import FoldedMigration, Pending, Planned, settle
from icemigrate.steps import as_steps


def plan_baseline(
    pending: Iterable[Pending],
    base: State,
    actual: Mapping[TableName, Table | None],
    around: Surroundings,
    *,
    is_claimed: bool,
) -> Planned:
    """Plan to record migrations without touching a table.

    :param base: as in the history.
    :param actual: the catalog's tables by their name there.
    :param is_claimed: whether the user said that the catalog is as the last of them declares; else only those
        that do no more than adopt are recorded.
    """
    courses: list[_Course] = []
    live = {name: _Course(name, table) for name, table in base.tables.items()}
    passed: list[_Passed] = []
    state = base
    for one in pending:
        folded = one.fold(state)
        # All leave their old names before any takes its new one, so that two can swap.
        before = [live.pop(w.formerly, None) if w.formerly else None for w in folded.wanted]
        through = [
            (w, course or _Course(w.name, None)) for w, course in zip(folded.wanted, before, strict=True)
        ]
        for wanted, course in through:
            course.pass_through(wanted, len(passed))
            live[wanted.name] = course
            courses += [course] if course not in courses else []
            state = state.after(wanted.name, wanted.formerly, wanted.table)
        state = replace(state, namespaces=state.namespaces | folded.namespaces)
        passed.append(_Passed(one, folded, tuple(through)))
    for course in courses:
        course.compare(actual, around)
    plans = tuple(
        _plan(p, at, around, is_claimed, missing)
        for at, (p, missing) in enumerate(zip(passed, _missing(passed, around), strict=True))
    )
    tables = {t.declared: t.wanted for p in plans for t in p.tables if t.wanted is not None}
    recorded = {name: tables.get(name, table) for name, table in state.tables.items()}
    return Planned(plans, replace(state, tables=recorded))


@dataclass(slots=True, eq=False)
class _Course:
    """One table on its way through the migrations.

    :param name: its declared name.
    :param base: the table as the history has it; ``None`` where it is not known.
    :ivar first: its first mention, where that is among the migrations.
    :ivar last: which of the migrations spoke of it last.
    :ivar there: the table in the catalog.
    :ivar ids: the catalog's ids of fields that are new in the migrations.
    """

    name: TableName
    base: Table | None
    first: Wanted | None = None
    table: Table | None = None
    last: int = 0
    is_ordered: bool = False
    there: Table | None = None
    ids: Mapping[int, int] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()

    def pass_through(self, wanted: Wanted, at: int) -> None:
        if self.base is None and self.first is None:
            self.first = wanted
        self.name, self.table, self.last = wanted.name, wanted.table, at
        self.is_ordered |= bool(wanted.positions)

    def compare(self, actual: Mapping[TableName, Table | None], around: Surroundings) -> None:
        """Hold the catalog against what the migrations lead to."""
        name = around.physical(self.name)
        there = actual.get(name)
        if self.table is None:
            if there is not None and (self.base is None or self.base.uuid in (None, there.uuid)):
                self.conflicts = (Conflict(f"{name}:name", f"table {name}", "dropped", f"table {name}"),)
            return
        if there is None:
            missing = "no such table in the catalog"
            before = UNKNOWN_BASE if self.base is None else f"table {self.base.name}"
            self.conflicts = (Conflict(f"{name}:name", before, f"table {name}", missing),)
            return
        self.there = there
        known = Schema() if self.base is None else self.base.schema
        self.ids = align(known, self.table.schema, there.schema)
        self.conflicts = tuple(self._differing(there, around))

    def _differing(self, there: Table, around: Surroundings) -> Iterator[Conflict]:
        assert self.table is not None
        base = None if self.base is None else replace(self.base, name=there.name)
        if base is not None and base.uuid is not None and there.uuid not in (None, base.uuid):
            uuids = (f"table {base.uuid}", f"table {base.uuid}", f"another table, {there.uuid}")
            yield Conflict(f"{there.name}:name", *uuids)
            return
        goal = self.bound(self.table, around)
        merged = merge(base, goal, there)
        for conflict in (*merged.conflicts, *merged.opened):
            yield conflict if base is not None else replace(conflict, base=UNKNOWN_BASE)
        if self.is_ordered:
            yield from _misplaced(goal, there)

    def fitted(self, table: Table, around: Surroundings) -> Table:
        """A table as declared at some version, as the history keeps it."""
        bound = self.bound(table, around)
        if self.there is None:
            return bound
        # What nobody knows the id of keeps its negative one, and cannot be brought back.
        known = tuple(d for d in bound.dropped if d.field.id > 0)
        return replace(settle(bound, self.there, bound), dropped=known)

    def bound(self, table: Table, around: Surroundings) -> Table:
        """A table as declared at some version, with the environment's overrides, under the catalog's ids."""
        adjusted = replace(around.adjust(replace(table, name=around.physical(table.name))), name=table.name)
        if self.there is None:
            return adjusted
        bound = rebind(adjusted, self.ids)
        if self.first is not None and self.first.adopt:
            bound = adopted(bound, self.there, self._unsaid(table))
        return bound

    def _unsaid(self, table: Table) -> frozenset[str]:
        """What the file that adopts it left out, and no later one has said since."""
        assert self.first is not None
        first = self.first.table
        assert first is not None
        values: Mapping[str, Callable[[Table], object]] = {
            "identifier": lambda t: t.schema.identifier_ids,
            "partition_by": lambda t: t.spec,
            "sort_by": lambda t: t.sort_order,
            "format_version": lambda t: t.format_version,
        }
        return frozenset(key for key in self.first.unsaid if values[key](table) == values[key](first))


def _misplaced(goal: Table, there: Table) -> Iterator[Conflict]:
    """Where a file asserts positions: structs whose declared fields stand in another order."""
    wanted, found = siblings(goal.schema), siblings(there.schema)
    fields = index(there.schema)
    for parent, order in wanted.items():
        kept = [i for i in order if i in fields]
        now = [i for i in found.get(parent, ()) if i in order]
        if kept != now:
            what = "columns" if parent is None else f"columns.{format_path(fields[parent].path)}"
            texts = (", ".join(fields[i].field.name for i in ids) for ids in (kept, now))
            yield Conflict(f"{there.name}:{what}.order", "(not known)", *texts)


class _Passed(Frozen):
    """A migration and the tables that it speaks of."""

    pending: Pending
    folded: FoldedMigration
    through: Sequence[tuple[Wanted, _Course]]


def _missing(passed: Sequence[_Passed], around: Surroundings) -> Iterator[list[tuple[str, ...]]]:
    """The namespaces that are not there, each at the first migration that wants it."""
    known = around.namespaces
    for one in passed:
        missing = {around.physical_namespace(n) for n in one.folded.namespaces} - known
        known |= missing
        yield sorted(missing)


def _plan(
    passed: _Passed, at: int, around: Surroundings, is_claimed: bool, missing: Sequence[tuple[str, ...]]
) -> MigrationPlan:
    pending = passed.pending
    tables = tuple(_table(wanted, course, at, around) for wanted, course in passed.through)
    problems = [] if is_claimed else [*_more_than_adopting(passed)]
    if pending.version in around.begun:
        problems += _interrupted(passed)
    problems += [
        Problem(
            "baseline-namespace",
            TableName(namespace, "*"),
            ("namespaces",),
            f"namespace `{format_path(namespace)}` is not in the catalog",
            "make it first: a baseline changes nothing",
        )
        for namespace in missing
    ]
    return MigrationPlan(
        version=pending.version,
        description=pending.description,
        checksum=pending.checksum,
        tables=tables,
        namespaces=passed.folded.namespaces,
        problems=tuple(problems),
        fingerprint=pending.fingerprint,
        baseline=True,
    )


def _table(wanted: Wanted, course: _Course, at: int, around: Surroundings) -> TablePlan:
    there = course.there
    name = around.physical(wanted.name) if there is None else there.name
    plan = TablePlan(
        name=name,
        declared=wanted.name,
        wanted=None if wanted.table is None else course.fitted(wanted.table, around),
        formerly=wanted.formerly,
        conflicts=course.conflicts if at == course.last else (),
    )
    if wanted is course.first and there is not None:
        found = Found(AdoptTable(there.name), there)
        return replace(plan, steps=tuple(as_steps([found], around.catalog_name)))
    return replace(plan, notes=("gone already" if wanted.table is None else "as declared already",))


def _more_than_adopting(passed: _Passed) -> Iterator[Problem]:
    version = passed.pending.version
    for wanted, _ in passed.through:
        if not wanted.adopt:
            yield Problem(
                "baseline-does-more",
                wanted.name,
                ("name",),
                f"{version} does more than adopt `{wanted.name}`, and a baseline does nothing",
                "`--baseline --to VERSION` records all up to the version that the catalog is at already; "
                "`apply` does the rest",
            )


def _interrupted(passed: _Passed) -> Iterator[Problem]:
    """What was begun is finished or undone: recorded beside it, it would be both applied and half done."""
    version = passed.pending.version
    for wanted, _ in passed.through[:1]:
        yield Problem(
            "baseline-interrupted",
            wanted.name,
            ("name",),
            f"{version} was interrupted on its way, and a baseline does not finish it",
            "`icemigrate apply` finishes it, `icemigrate rollback` undoes it",
        )
