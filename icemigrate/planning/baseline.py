"""Migrations recorded as applied after a comparison of the catalog with what they declare; pure.

Each version is recorded with its declared tables and the current field ids of the catalog.  A field that a
later version drops has no id in the catalog, and keeps the negative id of its declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.changes.change import PlanProblem
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.declared_sides import DeclaredState, TableTarget
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import Schema, schema_index, sibling_ids
from icemigrate.iceberg.table import Table
from icemigrate.planning.merge import (
    NO_TABLE,
    UNKNOWN_BASE,
    Conflict,
    complete_adopted_table,
    match_new_fields,
    merge_tables,
    rebind_field_ids,
    with_catalog_ids,
)
from icemigrate.planning.plan import MigrationPlan, TablePlan
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.replay import PlannedFiles, ReplayedFile, replay_file
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import DetectedChange


def plan_baseline(
    files: Iterable[MigrationFile],
    base: DeclaredState,
    actual: Mapping[TableName, Table | None],
    context: PlanningContext,
    *,
    is_claimed: bool,
) -> PlannedFiles:
    """Plan to record migrations without changing a table.

    :param base: the recorded state.
    :param actual: the catalog's tables by their name there.
    :param is_claimed: whether the user confirmed that the catalog is as the last of them declares; otherwise
        only migrations that do no more than adopt are recorded.
    """
    tracked_tables: list[_TrackedTable] = []
    live = {name: _TrackedTable(name, table) for name, table in base.tables.items()}
    passed: list[_PassedMigration] = []
    state, broken = base, frozenset[TableName]()
    for file in files:
        source = replay_file(state, file, broken, actual, context)
        broken = source.broken
        # All old names are freed before any new one is taken, so that two tables can swap names.
        before = [live.pop(w.formerly, None) if w.formerly else None for w in source.targets]
        through = [
            (w, tracked or _TrackedTable(w.name, None))
            for w, tracked in zip(source.targets, before, strict=True)
        ]
        for wanted, tracked in through:
            tracked.pass_through(wanted, len(passed))
            live[wanted.name] = tracked
            tracked_tables += [tracked] if tracked not in tracked_tables else []
        state = state.after_all((w.name, w.formerly, w.table) for w in source.targets)
        state = replace(state, namespaces=state.namespaces | source.namespaces)
        passed.append(_PassedMigration(source, tuple(through)))
    for tracked in tracked_tables:
        tracked.compare(actual, context)
    plans = tuple(
        _plan_file(p, at, context, is_claimed, missing)
        for at, (p, missing) in enumerate(zip(passed, _missing_namespaces(passed, context), strict=True))
    )
    tables = {t.declared: t.wanted for p in plans for t in p.tables if t.wanted is not None}
    recorded = {name: tables.get(name, table) for name, table in state.tables.items()}
    return PlannedFiles(plans, replace(state, tables=recorded), tuple(p.source for p in passed))


@dataclass(slots=True, eq=False)
class _TrackedTable:
    """One table and the migrations that declare it.

    :param name: its declared name.
    :param base: the recorded table; ``None`` without one. :ivar first: its first mention, if that is among
        the migrations. :ivar last: the last migration that mentions it. :ivar current: the table in the
        catalog. :ivar ids: the catalog's ids of fields that are new in the migrations.
    """

    name: TableName
    base: Table | None
    first: TableTarget | None = None
    table: Table | None = None
    last: int = 0
    is_ordered: bool = False
    current: Table | None = None
    ids: Mapping[int, int] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()

    def pass_through(self, wanted: TableTarget, at: int) -> None:
        if self.base is None and self.first is None:
            self.first = wanted
        self.name, self.table, self.last = wanted.name, wanted.table, at
        self.is_ordered |= bool(wanted.positions)

    def compare(self, actual: Mapping[TableName, Table | None], context: PlanningContext) -> None:
        """Compare the catalog with the declarations of the migrations."""
        name = context.physical(self.name)
        current = actual.get(name)
        if self.table is None:
            if current is not None and (self.base is None or self.base.uuid in (None, current.uuid)):
                self.conflicts = (Conflict(f"{name}:name", f"table {name}", "dropped", f"table {name}"),)
            return
        if current is None:
            before = UNKNOWN_BASE if self.base is None else f"table {self.base.name}"
            self.conflicts = (Conflict(f"{name}:name", before, f"table {name}", NO_TABLE),)
            return
        self.current = current
        known = Schema() if self.base is None else self.base.schema
        self.ids = match_new_fields(known, self.table.schema, current.schema)
        self.conflicts = tuple(c for c in self._differing(current, context) if c.fact not in context.keep)

    def _differing(self, current: Table, context: PlanningContext) -> Iterator[Conflict]:
        assert self.table is not None
        base = None if self.base is None else replace(self.base, name=current.name)
        if base is not None and base.uuid is not None and current.uuid not in (None, base.uuid):
            uuids = (f"table {base.uuid}", f"table {base.uuid}", f"another table, {current.uuid}")
            yield Conflict(f"{current.name}:name", *uuids)
            return
        goal = self.bound(self.table, context)
        merged = merge_tables(base, goal, current)
        for conflict in (*merged.conflicts, *merged.opened):
            yield conflict if base is not None else replace(conflict, base=UNKNOWN_BASE)
        if self.is_ordered:
            yield from _order_conflicts(goal, current)

    def fitted(self, table: Table, context: PlanningContext) -> Table:
        """The table as declared at a version, in the form that the history records."""
        bound = self.bound(table, context)
        if self.current is None:
            return bound
        # A dropped field without a known id keeps its negative one: restoring it adds a new field.
        return with_catalog_ids(bound, self.current, bound)

    def bound(self, table: Table, context: PlanningContext) -> Table:
        """A table as declared at some version, with the environment's overrides, under the catalog's ids."""
        adjusted = replace(context.adjust(replace(table, name=context.physical(table.name))), name=table.name)
        if self.current is None:
            return adjusted
        bound = rebind_field_ids(adjusted, self.ids)
        if self.first is not None and self.first.adopt:
            bound = complete_adopted_table(bound, self.current, self._unsaid(table))
        return bound

    def _unsaid(self, table: Table) -> frozenset[str]:
        """The keys that the adopting file and all later ones omit."""
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


def _order_conflicts(goal: Table, current: Table) -> Iterator[Conflict]:
    """Structs with asserted positions whose fields have another order in the catalog."""
    wanted, found = sibling_ids(goal.schema), sibling_ids(current.schema)
    fields = schema_index(current.schema)
    for parent, order in wanted.items():
        kept = [i for i in order if i in fields]
        now = [i for i in found.get(parent, ()) if i in order]
        if kept != now:
            what = "columns" if parent is None else f"columns.{format_path(fields[parent].path)}"
            names, found_names = (", ".join(fields[i].field.name for i in ids) for ids in (kept, now))
            yield Conflict(f"{current.name}:{what}.order", "(not known)", names, found_names)


class _PassedMigration(Frozen):
    """A migration and its targets, each with the table that it belongs to."""

    source: ReplayedFile
    through: Sequence[tuple[TableTarget, _TrackedTable]]


def _missing_namespaces(
    passed: Sequence[_PassedMigration], context: PlanningContext
) -> Iterator[list[tuple[str, ...]]]:
    """The missing namespaces, each at the first migration that declares it."""
    known = context.namespaces
    for migration in passed:
        missing = {context.physical_namespace(n) for n in migration.source.namespaces} - known
        known |= missing
        yield sorted(missing)


def _plan_file(
    passed: _PassedMigration,
    at: int,
    context: PlanningContext,
    is_claimed: bool,
    missing: Sequence[tuple[str, ...]],
) -> MigrationPlan:
    source = passed.source
    tables = tuple(_table(wanted, tracked, at, context) for wanted, tracked in passed.through)
    problems = [] if is_claimed else [*_more_than_adopting_problems(passed)]
    if source.version in context.begun:
        problems += _interrupted_problems(passed)
    problems += [
        PlanProblem(
            "baseline-namespace",
            TableName(namespace, "*"),
            ("namespaces",),
            f"namespace `{format_path(namespace)}` is not in the catalog",
            "create it first: a baseline changes nothing",
        )
        for namespace in missing
    ]
    return replace(source.migration_plan(tables, context), problems=tuple(problems), baseline=True)


def _table(wanted: TableTarget, tracked: _TrackedTable, at: int, context: PlanningContext) -> TablePlan:
    current = tracked.current
    name = context.physical(wanted.name) if current is None else current.name
    plan = TablePlan(
        name=name,
        declared=wanted.name,
        wanted=None if wanted.table is None else tracked.fitted(wanted.table, context),
        formerly=wanted.formerly,
        conflicts=tracked.conflicts if at == tracked.last else (),
    )
    if wanted is tracked.first and current is not None:
        found = DetectedChange(AdoptTable(current.name), current)
        return replace(plan, steps=tuple(as_steps([found], context.catalog_name)))
    return replace(plan, notes=("already dropped" if wanted.table is None else "already as declared",))


def _more_than_adopting_problems(passed: _PassedMigration) -> Iterator[PlanProblem]:
    version = passed.source.version
    for wanted, _ in passed.through:
        if not wanted.adopt:
            yield PlanProblem(
                "baseline-does-more",
                wanted.name,
                ("name",),
                f"{version} does more than adopt `{wanted.name}`, and a baseline changes no table",
                "`--baseline --to VERSION` records all versions that the catalog already has; `apply` "
                "applies the rest",
            )


def _interrupted_problems(passed: _PassedMigration) -> Iterator[PlanProblem]:
    """An interrupted migration has to be finished or undone first."""
    version = passed.source.version
    for wanted, _ in passed.through[:1]:
        yield PlanProblem(
            "baseline-interrupted",
            wanted.name,
            ("name",),
            f"{version} was interrupted, and a baseline does not finish it",
            "`icemigrate apply` finishes it, `icemigrate rollback` undoes it",
        )
