"""Plans of pending migrations, each on the state after the one before it; pure.

``check`` plans the same way against an empty catalog, so a pull request shows what a deployment does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from icemigrate.changes.change import Hazard
from icemigrate.changes.rename_table import RenameTable
from icemigrate.data_steps.data_step_kind import DataStepStage
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.replay.replay_work import ReplayWork
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.declared_sides import DeclaredChange, DeclaredState, TableTarget, put_declared_tables
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table, aside_name
from icemigrate.planning.merge import Fact, with_catalog_ids
from icemigrate.planning.plan import Consent, MigrationPlan
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.replay import PlannedFiles, ReplayedFile, replay_file
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import DetectedChange
from icemigrate.planning.table_input import TableResult
from icemigrate.planning.table_plan import plan_table


class PlannedFile(Frozen):
    """The plan of one migration file.

    :param state: as declared after it.
    :param done: facts that the catalog already has as declared, by declared table.
    """

    source: ReplayedFile
    plan: MigrationPlan
    state: DeclaredState
    done: Mapping[TableName, tuple[Fact, ...]]


@dataclass(slots=True)
class _PlanningState:
    """Declared and current state between two migrations.

    :ivar tables: those of ``base`` while a migration is planned.
    :ivar changes: the declared changes of the migration.
    :ivar aside: the changes that move tables out of the way of others, by their names in the catalog.
    :ivar blocked: tables with a conflict in an earlier migration.
    :ivar broken: tables with an error in an earlier file.
    """

    base: DeclaredState
    actual: dict[TableName, Table | None]
    namespaces: frozenset[tuple[str, ...]]
    blocked: set[TableName] = field(default_factory=set)
    broken: frozenset[TableName] = frozenset()
    tables: dict[TableName, Table] = field(default_factory=dict)
    changes: list[DeclaredChange] = field(default_factory=list)
    aside: dict[TableName, tuple[RenameTable, Table]] = field(default_factory=dict)


def plan_migrations(
    files: Iterable[MigrationFile],
    base: DeclaredState,
    actual: Mapping[TableName, Table | None],
    context: PlanningContext,
) -> PlannedFiles:
    """Plan migration files in order.

    :param base: the recorded state.
    :param actual: the current tables, by their name in the catalog; a missing name is a missing table.
    :raises ConflictError: a rolled-back migration cannot be applied again.
    """
    planned = tuple(plan_each(files, base, actual, context))
    state = planned[-1].state if planned else base
    return PlannedFiles(
        tuple(p.plan for p in planned),
        state,
        tuple(p.source for p in planned),
        tuple(p.done for p in planned),
    )


def plan_each(
    files: Iterable[MigrationFile],
    base: DeclaredState,
    actual: Mapping[TableName, Table | None],
    context: PlanningContext,
    *,
    is_work_limited: bool = True,
) -> Iterator[PlannedFile]:
    """Plan migration files as :func:`plan_migrations` does, each on demand.

    :param is_work_limited: whether planning ends with the migration that exceeds the limit of the work; its
        diagnostics then have an error.
    """
    state = _PlanningState(base, dict(actual), context.namespaces)
    files = tuple(files)
    work = ReplayWork(files) if is_work_limited else ReplayWork.unlimited()
    for file in files:
        source = replay_file(state.base, file, state.broken, state.actual, context, work)
        state.broken = source.broken
        yield _plan_file(source, state, context)
        if work.is_exceeded:
            return


def _plan_file(source: ReplayedFile, state: _PlanningState, context: PlanningContext) -> PlannedFile:
    # One copy for all tables of a migration, which may be ten thousand.
    state.tables = dict(state.base.tables)
    state.base = replace(state.base, tables=state.tables)
    state.changes, state.aside = [], dict(_moved_aside(source, state, context))
    for rename, there in state.aside.values():
        state.actual |= {there.name: None, rename.new: replace(there, name=rename.new)}
    results = [_plan_target(t, source.version, state, context) for t in source.targets]
    put_declared_tables(state.tables, state.changes)
    tables = {name.namespace for r in results for name in r.namespaces_needed()}
    physical = {context.physical_namespace(n) for n in source.namespaces}
    missing = sorted((physical | tables) - state.namespaces)
    state.base = replace(state.base, namespaces=state.base.namespaces | source.namespaces)
    state.namespaces |= frozenset(missing)
    hazards = [h for r in results for h in r.plan.hazards()]
    plan = replace(
        source.migration_plan(tuple(r.plan for r in results), context),
        create_namespaces=tuple(missing),
        problems=tuple(p for r in results for p in r.problems),
        warnings=tuple(p for r in results for p in r.warnings),
        unconsented=tuple(hazards_without_consent(hazards, source.consents)),
    )
    done = {r.plan.declared: r.done for r in results if r.done}
    return PlannedFile(source, plan, state.base, done)


def hazards_without_consent(hazards: Iterable[Hazard], consents: Sequence[Consent]) -> Iterable[Hazard]:
    """The hazards that no consent covers, each once."""
    given = {(consent.kind, consent.scope) for consent in consents}
    lengths = {len(consent.scope) for consent in consents if consent.scope is not None}

    def is_consented(hazard: Hazard) -> bool:
        kind, scope = hazard.kind.value, hazard.scope
        # A table's scope covers its columns.
        return (kind, None) in given or any(
            scope[end : end + 1] in ("", ".") and (kind, scope[:end]) in given for end in lengths
        )

    return dict.fromkeys(hazard for hazard in hazards if not is_consented(hazard))


def _moved_aside(
    source: ReplayedFile, state: _PlanningState, context: PlanningContext
) -> Iterator[tuple[TableName, tuple[RenameTable, Table]]]:
    """The tables that exchange names and wait, unless an interrupted run has already moved them."""
    for target in source.targets:
        if not target.waits or target.formerly is None:
            continue
        name, base = context.physical(target.formerly), state.base.tables.get(target.formerly)
        there, aside = state.actual.get(name), aside_name(name, context.project, source.version)
        is_known = base is not None and there is not None and base.uuid in (None, there.uuid)
        if there is not None and is_known and state.actual.get(aside) is None:
            yield name, (RenameTable(name, aside, makes_way=True), there)


def _plan_target(
    target: TableTarget, version: str, state: _PlanningState, context: PlanningContext
) -> TableResult:
    known = state.base.tables.get(target.formerly) if target.formerly else None
    formerly = None if target.formerly is None else context.physical(target.formerly)
    is_aside = target.waits and formerly in state.aside
    result = plan_table(target, known, state.actual, version, state.base.former, context, is_aside)
    freeing = state.aside.get(context.physical(target.name))
    if freeing is not None and result.plan.steps:
        steps = as_steps([DetectedChange(*freeing)], context.catalog_name)
        result = replace(result, plan=replace(result.plan, steps=(*steps, *result.plan.steps)))
    blocked = state.blocked & {target.name, target.formerly}
    if blocked:
        note = "not planned: an earlier migration of this table conflicts"
        plan = replace(result.plan, steps=(), conflicts=(), notes=(note,), rows=(), finish=())
        result = replace(result, plan=plan)
    if blocked or result.plan.conflicts:
        state.blocked.add(target.name)
    _advance(target, result, state)
    return result


def _advance(target: TableTarget, result: TableResult, state: _PlanningState) -> None:
    """Put the table into the state as the migration leaves it."""
    base = state.base.tables.get(target.formerly) if target.formerly else None
    declared = result.plan.wanted
    table = None if declared is None else with_catalog_ids(declared, result.after, base)
    state.changes.append((target.name, target.formerly, table))
    if target.formerly is not None and (table is None or target.formerly != target.name):
        state.base = replace(state.base, former=state.base.former | {target.formerly})
    state.actual[result.plan.first_name] = None
    after = result.after
    if after is None:
        return
    if after.snapshot_log is not None and any(p.work.stage is DataStepStage.WRITE for p in result.plan.rows):
        after = replace(after, snapshot_log=replace(after.snapshot_log, is_outdated=True))
    state.actual[after.name] = after
