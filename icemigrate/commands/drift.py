"""``drift``: compares the catalog with the recorded state; read-only, starts no JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.catalog.capabilities import server_managed_predicate
from icemigrate.catalog.readable_tables import load_readable_tables
from icemigrate.commands.compared_tables import ComparedTable, compare_recorded_tables
from icemigrate.commands.drift_notes import FactNotes, fact_notes, missing_tag_notes
from icemigrate.commands.names_to_load import existing_namespaces
from icemigrate.commands.out_of_order import OutOfOrderCheck
from icemigrate.commands.plan import planning_context
from icemigrate.commands.project_files import file_errors_first, load_unapplied
from icemigrate.commands.undeclared_tables import count_undeclared_tables
from icemigrate.commands.unlock import unfinished_run_texts
from icemigrate.errors import CatalogError
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.files.read.migration_file import AnyFile
from icemigrate.frozen import Frozen, field, replace
from icemigrate.history.event_log import LogEntry
from icemigrate.history.history_properties import History
from icemigrate.history.manual_changes import ManualChanges, manual_changes
from icemigrate.history.migration_states import migration_states
from icemigrate.history.past_states import FactsOfTable, states_seen
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import is_icemigrate_branch, is_maintain_branch_of
from icemigrate.iceberg.table import Table
from icemigrate.planning.drift.attribution import (
    ChangeAttribution,
    PastObservation,
    attribute_changes,
)
from icemigrate.planning.drift.differing_facts import (
    DifferingFact,
    find_differing_facts,
    is_expired_reference,
)
from icemigrate.planning.drift.recreated_table import recreated_table_hint
from icemigrate.planning.merge import Fact
from icemigrate.planning.plan import MigrationPlan
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.replay import mentioned_tables
from icemigrate.project import Project
from icemigrate.results.drift_results import DriftFact, DriftResult, DriftStatus, TableDrift

_NOTHING = ChangeAttribution(None, None)


class PendingState(Frozen):
    """The state that the pending migrations declare."""

    migrations: tuple[MigrationPlan, ...]
    state: DeclaredState
    done: tuple[Mapping[TableName, tuple[Fact, ...]], ...] = ()

    def of(self, base: Table) -> Table | None:
        """A recorded table as it is declared then."""
        if base.uuid is None:
            return self.state.tables.get(base.name)
        return next((t for t in self.state.tables.values() if t.uuid == base.uuid), None)

    def drop_of(self, base: Table) -> str | None:
        """The migration that drops a recorded table."""
        drops = (
            m.version
            for m in self.migrations
            for t in m.tables
            if t.wanted is None and t.formerly == base.name
        )
        return next(drops, None)

    def version(self, base: Table, subject: Sequence[str]) -> str | None:
        """The pending migration that declares a current fact; otherwise the last one of the table."""
        last = None
        for migration, done in zip(self.migrations, self.done, strict=True):
            for table in migration.tables:
                if base.name in (table.declared, table.formerly):
                    last = migration.version
                    if any(fact.is_about(tuple(subject[:2])) for fact in done.get(table.declared, ())):
                        return last
        return last


def drift(project: Project, environment: str | None = None, tables: Iterable[str] = ()) -> DriftResult:
    """Differences of the tables from their recorded state.

    :param tables: declared names; by default all tables.
    :raises UsageError: there is no such environment or table.
    :raises Mistakes: files have errors.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    with file_errors_first(project), open_environment(project, environment) as session:
        history = session.history()
        loaded = load_unapplied(project, history.applied)
        named = list(tables)
        met = compare_recorded_tables(session, history, named)
        wanted = pending_state(session, history, loaded.files) if any(has_drift(m) for m in met) else None
        past = _recorded_past(session, history, met)
        found = [_table(session, history, m, wanted, past) for m in met]
        result = DriftResult(
            project=project.name,
            environment=session.environment.name,
            catalog=session.catalog.identity,
            compared=sum(m.unreadable is None for m in met),
            recorded=bool(history.state.tables),
            tables=tuple(t for t in found if t.state != "there" or t.facts or t.notes),
            interrupted=unfinished_run_texts(history),
            undeclared=None if named else count_undeclared_tables(session, history, loaded.files),
        )
        if not result.drifted:
            return result
        drifted = [m for m, t in zip(met, found, strict=True) if t.drifted]
        return replace(result, resolutions=tuple(_resolutions(session, history, drifted)))


def _resolutions(
    session: EnvironmentSession, history: History, drifted: Sequence[ComparedTable]
) -> Iterator[str]:
    """What a user can do about the drift, each tried by planning."""
    # Both modules read tables through this one.
    from icemigrate.commands.drift_accept import can_accept
    from icemigrate.commands.reconcile import reconcile_request, unready_tables

    names = [session.names.declared(one.base.name) for one in drifted]
    if can_accept(session, history, drifted):
        yield "`drift --accept` writes a migration that declares the current state"
    unready = unready_tables(session, reconcile_request(map(str, names)))
    if not unready:
        yield "`plan --reconcile` shows how to restore the recorded state"
    elif ready := [f"--table {name}" for name in names if name not in unready]:
        some = " ".join(ready[:_MAX_NAMED])
        more = "" if len(ready) <= _MAX_NAMED else f", and for {len(ready) - _MAX_NAMED} more tables"
        yield f"`plan --reconcile {some}` shows how to restore the recorded state{more}"
    if again := [n for n, one in zip(names, drifted, strict=True) if one.is_recreated]:
        tables = " ".join(f"--adopt {name}" for name in again[:_MAX_NAMED])
        yield f"`repair {tables}` records what was created again under the name of a recorded table"


_MAX_NAMED = 5
"""How many tables one suggestion names."""


def declared_already(
    session: EnvironmentSession, history: History, met: ComparedTable, wanted: PendingState
) -> str | None:
    """The pending migration that declares a table as it is now; ``None`` without one."""
    table = _table(session, history, met, wanted, _RecordedPast())
    by = [table.pending] if table.state != "there" else []
    by += [fact.pending for fact in table.facts]
    return by[-1] if by and None not in by else None


def pending_state(session: EnvironmentSession, history: History, files: Sequence[AnyFile]) -> PendingState:
    """The state that the pending files declare; ``plan`` reports their errors."""
    late = OutOfOrderCheck(session.project, history)
    pending = migration_states(files, history.applied, history.intents, out_of_order=late).pending
    if not pending:
        return PendingState((), history.state)
    names = {session.names.table(name): name for name in mentioned_tables(pending, history.state)}
    loaded = load_readable_tables(session.catalog, sorted(names))
    actual = dict(loaded.tables)
    for name in loaded.unreadable:
        # What it is now is not known, so it counts as it was recorded.
        recorded = history.state.tables.get(names[name])
        actual[name] = None if recorded is None else replace(recorded, name=name)
    there = existing_namespaces(
        session, history, pending, {**loaded.tables, **dict.fromkeys(loaded.unreadable)}
    )
    context = planning_context(session, history, pending, there)
    planned = plan_migrations(pending, history.state, actual, context)
    return PendingState(planned.migrations, planned.state, planned.done)


def has_drift(met: ComparedTable) -> bool:
    """Whether anything of a table is not as recorded."""
    return met.unreadable is None and (bool(met.facts) or met.there is None or met.is_renamed)


class _RecordedPast(Frozen):
    """What the undo records show beside the current state; by default nothing.

    :param traces: by the declared name of the table.
    :param tag_notes: by the uuid of the table.
    :param manual: the changes with `icemigrate table`.
    """

    traces: Mapping[TableName, Mapping[DifferingFact, ChangeAttribution]] = field(default_factory=dict)
    tag_notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fact_notes: FactNotes = field(default_factory=dict)
    manual: ManualChanges = ManualChanges()


def _recorded_past(
    session: EnvironmentSession, history: History, met: Sequence[ComparedTable]
) -> _RecordedPast:
    names = {m.base.name: session.names.declared(m.base.name) for m in met}
    differing = [
        (m, FactsOfTable(replace(m.base, name=names[m.base.name]), m.there, m.facts))
        for m in met
        if m.there is not None and m.facts
    ]
    machines = server_managed_predicate(session.catalog.capabilities)
    seen = states_seen(history, (one for _, one in differing), machines)
    return _RecordedPast(
        {one.base.name: _traces(session, m, seen[one.base.name]) for m, one in differing},
        missing_tag_notes(session, history, met),
        fact_notes(history, ((one.base, one.facts) for _, one in differing)),
        manual_changes(history) if differing else ManualChanges(),
    )


def _table(
    session: EnvironmentSession,
    history: History,
    met: ComparedTable,
    wanted: PendingState | None,
    past: _RecordedPast,
) -> TableDrift:
    declared = session.names.declared(met.base.name)
    if met.unreadable is not None:
        return TableDrift(str(declared), str(met.base.name), state="unreadable", notes=(met.unreadable,))
    base = replace(met.base, name=declared)
    then = wanted.of(base) if wanted is not None else base
    row = TableDrift(
        str(declared),
        str(met.base.name),
        notes=(*past.tag_notes.get(met.base.uuid or "", ()), *_strays(history, declared, met)),
    )
    if met.there is None:
        if met.stranger is not None:
            return replace(row, state="replaced", notes=_replaced(met, declared))
        dropped = None if wanted is None else wanted.drop_of(base)
        return replace(row, state="gone", pending=dropped)
    if met.is_renamed:
        row = replace(row, state="renamed", found=str(met.there.name))
        row = replace(row, notes=(*row.notes, *_replaced(met, declared)))
        if then is not None and session.names.table(then.name) == met.there.name and wanted is not None:
            row = replace(row, pending=wanted.version(base, ("name",)))
    done = _done(session, met, then)
    pending = {f: wanted.version(base, f.subject) for f in done} if wanted is not None else {}
    traces = past.traces.get(declared, {})
    facts = (
        replace(
            _drift_fact(f, pending.get(f), traces.get(f, _NOTHING), met, past.manual.of(met.there, f)),
            note=past.fact_notes.get((declared, f)),
        )
        for f in met.facts
    )
    return replace(row, facts=tuple(facts))


def _done(session: EnvironmentSession, met: ComparedTable, then: Table | None) -> list[DifferingFact]:
    """The facts that pending migrations want just as they are."""
    if then is None or met.there is None or then == met.base:
        return []
    left = {
        f.key
        for f in find_differing_facts(then, met.there, server_managed_predicate(session.catalog.capabilities))
    }
    return [f for f in met.facts if f.key not in left]


def _drift_fact(
    fact: DifferingFact,
    pending: str | None,
    seen: ChangeAttribution,
    met: ComparedTable,
    by: LogEntry | None,
) -> DriftFact:
    """A fact for the result.

    :param by: the event of the manual change that made it; ``None`` where another client did.
    """
    if by is not None:
        seen = ChangeAttribution(by.at, by.at)
    status: DriftStatus = "drift" if fact.managed else "unmanaged"
    if pending is not None:
        status = "done already"
    elif is_expired_reference(fact, met.base):
        status = "expired"
    return DriftFact(
        fact=".".join(fact.subject),
        change=fact.kind.value,
        recorded=fact.recorded,
        actual=fact.actual,
        told=status,
        pending=pending,
        after=seen.after,
        before=seen.before,
        writers=seen.writers,
        by=None if by is None else by.user,
    )


def _traces(
    session: EnvironmentSession, met: ComparedTable, seen: Sequence[PastObservation]
) -> Mapping[DifferingFact, ChangeAttribution]:
    """The times and writers of the changes of one table, as far as they are known."""
    if not met.facts or met.there is None:
        return {}
    try:
        metadata = session.catalog.metadata_json(met.there.name)
    except CatalogError:
        metadata = None
    return {} if metadata is None else attribute_changes(metadata, tuple(seen), met.facts)


def _strays(history: History, declared: TableName, met: ComparedTable) -> Iterator[str]:
    """Leftover branches of icemigrate on a table."""
    if met.there is None or any(str(declared) in intent.tables for intent in history.intents):
        return
    for name, ref in sorted(met.there.refs.items()):
        if ref.kind == "branch" and is_icemigrate_branch(name) and not _is_in_use(name, history, met.there):
            yield (
                f"the branch {name} was left by an interrupted run: `ALTER TABLE … DROP BRANCH` removes it"
            )


def _is_in_use(branch: str, history: History, table: Table) -> bool:
    """Whether ``maintain`` uses a branch: in a running process, or in a dead one whose lock still exists."""
    lock = history.lock
    return (
        lock is not None and str(table.name) in lock.tables and is_maintain_branch_of(branch, history.project)
    )


def _replaced(met: ComparedTable, declared: TableName) -> tuple[str, ...]:
    if met.stranger is None:
        return ()
    what = (
        f"{met.stranger.name} is a different table now (uuid {met.stranger.uuid}, recorded "
        f"uuid {met.base.uuid})"
    )
    if met.there is not None:
        return (f"{what}: move it away, then rename the recorded table back",)
    return (f"{what}: {recreated_table_hint(declared)}",)
