"""``plan``: plans pending migrations against the catalog; read-only, starts no JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from icemigrate.catalog.view_names import views_beside
from icemigrate.commands.affected_views import with_affected_views
from icemigrate.commands.extensions import extension_files, match_list_values
from icemigrate.commands.kept_view_checks import with_kept_view_problems
from icemigrate.commands.list_progress import list_notes
from icemigrate.commands.list_values import known_values, load_with_list_values
from icemigrate.commands.lock_file_checks import planned_file_warnings
from icemigrate.commands.names_to_load import existing_namespaces, names_to_load
from icemigrate.commands.original_properties import original_property_predicate
from icemigrate.commands.out_of_order import OutOfOrderCheck
from icemigrate.commands.project_files import (
    file_errors_first,
    known_version,
    raise_if_errors,
)
from icemigrate.commands.redo_inputs import (
    Redo,
    find_redos,
    redo_inputs,
    requested_redos,
    tried_redo_hint,
    with_redo_hints,
    with_rolled_back_versions,
)
from icemigrate.commands.remaining_effects import notes_on
from icemigrate.commands.table_by_table import with_engine_notes
from icemigrate.commands.template_names import require_own_names
from icemigrate.commands.unlock import interruption_notes
from icemigrate.diagnostics import did_you_mean, has_errors, sort_key
from icemigrate.errors import ConflictError, IcemigrateError, Mistakes, UsageError
from icemigrate.evidence.narrowed_types import with_narrow_type_problems
from icemigrate.evidence.not_null_checks import with_not_null_problems
from icemigrate.evidence.old_partition_files import with_old_partition_files, with_unplanned_tables
from icemigrate.evidence.snapshot_logs import with_snapshot_logs
from icemigrate.execution.continued_run import (
    OVERWRITE_OPTION,
    recorded_overwrites,
    recorded_restored_fields,
    unfinished_rollbacks,
    without_leftover_branches,
)
from icemigrate.execution.environment_session import EnvironmentSession, environment_plan, open_environment
from icemigrate.execution.last_copies import versions_with_last_copies
from icemigrate.files.read.migration_file import AnyFile, MigrationFile
from icemigrate.frozen import Frozen, field, replace
from icemigrate.history.history_properties import History
from icemigrate.history.migration_states import (
    KnownSquash,
    MigrationStates,
    lost_value_diagnostics,
    migration_states,
    other_state,
)
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import is_history
from icemigrate.planning.baseline import plan_baseline
from icemigrate.planning.concurrent_writers import with_affected_writers
from icemigrate.planning.plan import MigrationPlan, Plan, SquashedVersions
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.replay import PlannedFiles, reused_names
from icemigrate.project import Project
from icemigrate.project.reserved_tables import reserved_names
from icemigrate.results.command_results import PlanResult
from icemigrate.system.process import pause_garbage_collection


def plan(
    project: Project,
    environment: str | None = None,
    *,
    to: str | None = None,
    overwrite: Iterable[str] = (),
    redo: str | Sequence[str] | None = None,
    baseline: bool = False,
) -> PlanResult:
    """Plan all pending migrations, or those up to a version.

    :param environment: ``None`` for the project's default.
    :param to: the last version to plan.
    :param overwrite: facts (``table:subject``) that are set whatever their current value is.
    :param redo: plan only these versions, which were rolled back: ``10``, ``10..12``, ``all``; in a text,
        separated by blanks.
    :param baseline: plan to record them as applied without changing a table: those that only adopt, or with
        ``to`` all up to a version that the catalog matches.
    :raises UsageError: there is no such environment, version or conflict.
    :raises Mistakes: files have errors, or do not fit the history.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    with (
        pause_garbage_collection(),
        file_errors_first(project),
        open_environment(project, environment) as session,
    ):
        history = session.history()
        session, loaded = load_with_list_values(session, history)
        result = plan_in_environment(
            session,
            history,
            loaded.files,
            to=to,
            overwrite=overwrite,
            redo=redo,
            baseline=baseline,
            tries_resolutions=True,
        )
        result = with_unplanned_tables(result, session.catalog, session.names.table)
    stale = planned_file_warnings(project, loaded, {m.version for m in result.plan.migrations})
    lists = list_notes(session.project, history)
    reported = dict.fromkeys((*loaded.diagnostics, *result.diagnostics, *lists, *stale))
    return replace(result, diagnostics=tuple(sorted(reported, key=sort_key)))


def plan_in_environment(
    session: EnvironmentSession,
    history: History,
    files: Sequence[AnyFile],
    *,
    to: str | None = None,
    overwrite: Iterable[str] = (),
    strict: bool = True,
    redo: str | Sequence[str] | None = None,
    baseline: bool = False,
    tries_resolutions: bool = False,
    only_extends: bool = False,
) -> PlanResult:
    """Plan in an environment whose catalog is open; as :func:`plan`.

    :param strict: refuse facts of ``overwrite`` without a conflict.
    :param tries_resolutions: whether conflicts come with what a user can do about them, which takes a few
        more plans.
    :param only_extends: whether pending versions are left out.
    """
    late = OutOfOrderCheck(session.project, history)
    states = migration_states(files, history.applied, history.intents, out_of_order=late)
    if states.mistakes:
        # Only a refusal needs this module and what it imports.
        from icemigrate.commands.edited_files import explain_edits

        raise_if_errors(tuple(explain_edits(history, files, states.mistakes)))
    raise_if_errors(tuple(d for found in states.squashes for d in other_state(history, found)))
    raise_if_errors(tuple(d for found in states.squashes for d in lost_value_diagnostics(history, found)))
    last = None if to is None else known_version(files, to, "--to")
    pending, squashes, beyond = _select_up_to(states, last)
    if not baseline:
        pending = _with_extensions(session, history, pending, last, only_extends=only_extends)
    again = requested_redos(history, files, redo.split() if isinstance(redo, str) else redo or ())
    if again:
        pending = match_list_values([a.file for a in again], history, session.project)
        squashes = ()
    redos = find_redos(history, pending, again)
    if baseline:
        squashes = ()
    begun = {intent.version.text for intent in history.intents}
    physical = names_to_load(session, history, pending, redos)
    known = {session.names.table(name): table for name, table in history.state.tables.items()}
    loaded = session.catalog.load(sorted(physical), with_writers=True, known=known)
    actual = without_leftover_branches(loaded, session.project.name, begun)
    if any(entry.pins_references for file in pending for entry in file.tables):
        actual = with_snapshot_logs(actual, session.catalog)
    there = existing_namespaces(session, history, pending, actual)
    views = views_beside(session.catalog, actual)
    planner = partial(plan_baseline, is_claimed=to is not None) if baseline else plan_migrations
    gone = _held_gone(history, files)
    given = PlanInputs(
        session, pending, history, actual, there, views, bool(again), redos, gone, squashes, planner
    )
    asked = frozenset(overwrite)
    result = _planned(given, asked, files, again if tries_resolutions else ())
    if strict:
        _refuse_idle(given, asked)
    if tries_resolutions and any(m.conflicts for m in result.plan.migrations):
        # Only a plan with conflicts needs this module and what it imports.
        from icemigrate.commands.conflict_resolutions import with_apply_resolutions

        result = replace(result, plan=with_apply_resolutions(given, result.plan, to))
    whole = replace(
        with_old_partition_files(result.plan, session.catalog),
        to=to,
        beyond=beyond,
        lists=known_values(session.project),
        only_extends=only_extends,
    )
    whole = with_rolled_back_versions(
        whole, history, files, [m.version for m in states.migrations if m.state == "held"]
    )
    shown = PlanResult(whole, (*result.diagnostics, *interruption_notes(history)))
    return with_engine_notes(session, shown, has_history=history.head is not None)


def _planned(
    given: PlanInputs, overwrite: frozenset[str], files: Sequence[AnyFile], redone: Sequence[Redo]
) -> PlanResult:
    """The plan; errors that rolled-back versions cause come with the redo that helps.

    :param redone: the requested redos, where a refusal names what planning has tried.
    """
    session, history = given.session, given.history

    def can_be_redone(versions: Sequence[str]) -> bool:
        try:
            return plan_in_environment(session, history, files, redo=versions).ready
        except IcemigrateError:
            return False

    try:
        return given.plan(overwrite)
    except Mistakes as error:
        raise Mistakes(tuple(with_redo_hints(error.diagnostics, history, files, given.pending))) from None
    except ConflictError as error:
        if redone:
            error.hint = tried_redo_hint(error, history, files, redone, can_be_redone)
        raise


def _held_gone(history: History, files: Sequence[AnyFile]) -> tuple[str, ...]:
    """The rolled-back versions without a file: no redo waits for them."""
    there = {f.version for f in files}
    return tuple(
        a.version.text
        for a in history.applied
        if a.state is VersionState.ROLLED_BACK and a.version not in there
    )


def _with_extensions(
    session: EnvironmentSession,
    history: History,
    pending: Sequence[MigrationFile],
    last: int | None,
    *,
    only_extends: bool,
) -> tuple[MigrationFile, ...]:
    """The pending files after the parts of applied ones for new values of their lists.

    :param last: the number of the last version; ``None`` for all.
    """
    extensions = [
        file
        for file in extension_files(session.project, history)
        if last is None or file.version.number <= last
    ]
    extended = {file.version for file in extensions}
    others = () if only_extends else [file for file in pending if file.version not in extended]
    require_own_names(session.project, history, others)
    return (*extensions, *match_list_values(others, history, session.project))


def _select_up_to(
    states: MigrationStates, last: int | None
) -> tuple[tuple[MigrationFile, ...], tuple[KnownSquash, ...], tuple[str, ...]]:
    """The files that wait and the squashes up to a version, and the versions that wait beyond it."""
    if last is None:
        return states.pending, states.squashes, ()
    return (
        tuple(f for f in states.pending if f.version.number <= last),
        tuple(s for s in states.squashes if s.file.version.number <= last),
        tuple(f.version.text for f in states.pending if f.version.number > last),
    )


def planning_context(
    session: EnvironmentSession,
    history: History,
    files: Sequence[MigrationFile],
    namespaces: frozenset[tuple[str, ...]],
    overwrite: frozenset[str] = frozenset(),
) -> PlanningContext:
    """The planner's inputs from the environment.

    :param files: the planned files.
    :param namespaces: the catalog's.
    """
    return PlanningContext(
        project=session.project.name,
        catalog_name=session.environment.catalog.name,
        physical=session.names.table,
        physical_namespace=session.names.namespace,
        namespaces=namespaces,
        default_locations=_default_locations(session, reused_names(files, history.state)),
        overwrite=overwrite,
        overwrite_of=recorded_overwrites(history),
        adjust=session.names.adjust,
        begun=frozenset(intent.version.text for intent in history.intents),
        restored_fields=recorded_restored_fields(history),
        partitions_by_first_column=session.catalog.capabilities.partitions_by_first_column,
        has_branches=session.catalog.capabilities.branches,
        last_copies=versions_with_last_copies(history),
        is_original_property=original_property_predicate(session.catalog.capabilities, history),
    )


def _default_locations(session: EnvironmentSession, declared: Iterable[TableName]) -> dict[TableName, str]:
    """Where the catalog puts new tables that no override of the environment gives a location."""
    names = [session.names.table(name) for name in sorted(declared)]
    unset = [n for n in names if session.names.adjust(Table(n, Schema())).location is None]
    return {name: session.catalog.default_location(name) for name in unset}


class PlanInputs(Frozen):
    """Everything that a plan is made of, read once."""

    session: EnvironmentSession
    pending: tuple[MigrationFile, ...]
    history: History
    actual: dict[TableName, Table | None]
    namespaces: frozenset[tuple[str, ...]]
    views: frozenset[TableName] = frozenset()
    is_redo: bool = False
    redos: Mapping[str, Redo] = field(default_factory=dict)
    held_gone: tuple[str, ...] = ()
    squashes: tuple[KnownSquash, ...] = ()
    planner: Callable[..., PlannedFiles] = plan_migrations

    def plan(self, overwrite: frozenset[str], keep: frozenset[str] = frozenset()) -> PlanResult:
        """The plan of the pending files.

        :param overwrite: facts that are set whatever the catalog has.
        :param keep: facts that keep their current value, as if the files declared it.
        :raises Mistakes: the files hold mistakes.
        :raises ConflictError: a migration cannot be redone.
        """
        session = self.session
        histories = [
            session.names.declared(name)
            for name, table in self.actual.items()
            if table is not None and is_history(table.properties)
        ]
        context = replace(
            planning_context(session, self.history, self.pending, self.namespaces, overwrite),
            keep=keep,
            views=self.views,
            reserved=reserved_names(session.project, (session.environment,), histories),
            redos={
                version: redo_inputs(redo, session, self.actual, {*self.redos, *self.held_gone})
                for version, redo in self.redos.items()
            },
        )
        planned = self.planner(self.pending, self.history.state, self.actual, context)
        name = session.environment.catalog.name
        migrations = with_not_null_problems(planned.migrations, self.actual, session.catalog, name)
        migrations = with_narrow_type_problems(
            migrations, self.actual, session.catalog, self.history, redone=self.redos
        )
        migrations = with_affected_views(session, migrations, planned.state, self.actual)
        migrations = with_kept_view_problems(session, migrations)
        diagnostics = (*planned.diagnostics(migrations), *notes_on(self.redos.values()))
        if has_errors(planned.replay_diagnostics):
            raise_if_errors(diagnostics)
        return PlanResult(self._complete(migrations, overwrite), diagnostics)

    def _complete(self, migrations: tuple[MigrationPlan, ...], overwrite: frozenset[str]) -> Plan:
        session, affected = self.session, with_affected_writers(migrations, self.actual)
        recorded = recorded_overwrites(self.history)
        migrations = (
            *(found.plan() for found in self.squashes),
            *(self._marked(m, overwrite | recorded.get(m.version, frozenset())) for m in affected),
        )
        return replace(
            environment_plan(session, self.history, migrations, self.actual),
            overwrite=overwrite,
            redo=" ".join(self.redos) if self.is_redo else None,
            unfinished=unfinished_rollbacks(self.history),
        )

    def _marked(self, migration: MigrationPlan, overwrite: frozenset[str]) -> MigrationPlan:
        """Mark a redo or a squash as such."""
        choices = tuple(f"{OVERWRITE_OPTION} {fact}" for fact in sorted(overwrite))
        migration = replace(migration, is_redo=migration.version in self.redos, choices=choices)
        file = next(f for f in self.pending if f.version.text == migration.version)
        if file.replaces is None:
            return migration
        return replace(migration, squash=SquashedVersions(file.replaces.first.text))


def _refuse_idle(given: PlanInputs, overwrite: frozenset[str]) -> None:
    """Refuse a fact that overwrites nothing: a typing error, or another client has set it already.

    A fact that an interrupted run was to overwrite may have its wanted value by now.

    :raises UsageError: without this fact there would be no conflict about it.
    """
    recorded = frozenset[str]().union(*recorded_overwrites(given.history).values())
    for fact in sorted(overwrite - recorded):
        without = given.plan(overwrite - {fact}).plan
        conflicts = {c.fact for m in without.migrations for c in m.conflicts}
        if fact not in conflicts:
            hint = did_you_mean(fact, conflicts) or "`plan` without `--overwrite` lists the conflicts"
            raise UsageError(f"--overwrite {fact}: this fact has no conflict", hint)
