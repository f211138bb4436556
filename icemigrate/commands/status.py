"""``status`` and ``history``: the states of migrations and tables; read-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from icemigrate.catalog.capabilities import server_managed_predicate
from icemigrate.catalog.readable_tables import load_readable_tables
from icemigrate.commands.out_of_order import OutOfOrderCheck
from icemigrate.commands.project_files import file_errors_first
from icemigrate.commands.remaining_effects import waiting_values
from icemigrate.commands.table_versions import (
    COMPLETE_STATES,
    TableVersions,
    add_recorded_tables,
    files_and_table_names,
    table_versions,
)
from icemigrate.commands.unlock import interrupted_intents, interruption_text, lock_status
from icemigrate.errors import CatalogError, HistoryError, IcemigrateError, Mistakes
from icemigrate.evidence.old_partition_files import find_old_partition_files
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.files.read.list_sources import ListSource
from icemigrate.files.read.migration_file import AnyFile
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.event_log import (
    UNRECORDED_OUTCOME,
    EventLog,
    LogEntry,
    LogEvent,
    unlogged_intents,
    unpack_log,
)
from icemigrate.history.history_properties import History
from icemigrate.history.migration_states import MigrationStates, migration_states
from icemigrate.history.recorded_versions import Intent, VersionState
from icemigrate.iceberg.kept_views import is_kept_view_key
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table, creator_of, made_by, owner_of, project_of
from icemigrate.iceberg.undo_record import restores_values
from icemigrate.planning.drift.comparable_tables import ServerManaged
from icemigrate.planning.drift.differing_facts import find_differing_facts, is_expired_reference
from icemigrate.planning.drift.recreated_table import recreated_table_hint
from icemigrate.project import Project
from icemigrate.results.status_results import (
    HistoryEntry,
    HistoryEvent,
    HistoryResult,
    KeptViewStatus,
    ListProgress,
    MigrationStatus,
    Status,
    TableStatus,
)


def history(project: Project, environment: str | None = None) -> HistoryResult:
    """The events with their users, times and durations.

    :raises UsageError: there is no such environment.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    with open_environment(project, environment) as session:
        known = session.history()
        entries = tuple(
            HistoryEntry(
                version=a.version.text,
                description=a.description,
                standing=a.state.value,
                at=a.applied_at,
                by=a.applied_by,
                duration_ms=a.duration_ms,
                checksum=a.checksum,
            )
            for a in known.applied
        )
        log = unpack_log(known.log)
        return HistoryResult(
            project.name, session.environment.name, entries, history_events(known, log), log.earlier
        )


def history_events(known: History, log: EventLog) -> tuple[HistoryEvent, ...]:
    """The events, with running and interrupted migrations.

    :param log: the history's, unpacked.
    """
    in_log = {e.version for e in log.entries}
    before = [a for a in known.applied if a.version not in in_log and a.state is not VersionState.INTERRUPTED]
    events = [
        # Versions that an older release applied, or that are too old for the log.
        HistoryEvent(
            "applied", a.version.text, a.description, a.applied_at, a.applied_by, "", a.duration_ms or None
        )
        for a in sorted(before, key=lambda a: a.applied_at)
    ]
    events += [_event(e) for e in log.entries]
    events += [_unended(i, known) for i in unlogged_intents(log, known.intents)]
    return tuple(events)


def _event(entry: LogEntry) -> HistoryEvent:
    return HistoryEvent(
        event=entry.event.value,
        version=None if entry.version is None else entry.version.text,
        description=entry.description,
        at=entry.at,
        by=entry.user,
        host=entry.host,
        duration_ms=entry.duration_ms or None,
        run=entry.run,
        message=entry.message,
        action=entry.action or None,
    )


def _unended(intent: Intent, known: History) -> HistoryEvent:
    applied = known.of(intent.version)
    is_on = known.lock is not None and known.lock.run == intent.run
    return HistoryEvent(
        event="running" if is_on else "interrupted",
        version=intent.version.text,
        description="" if applied is None else applied.description,
        at=intent.started_at,
        by=intent.user,
        host=intent.host,
        run=intent.run,
        message=None if is_on else UNRECORDED_OUTCOME,
        action=intent.direction.value,
    )


def status(project: Project, environment: str | None = None, *, details: bool = False) -> Status:
    """The state of each migration and each table.

    :param details: whether to look for rollbacks of all versions that can no longer restore everything, which
        takes requests for each table that lost values; without it, only the newest versions are checked.
    :raises UsageError: there is no such environment.
    :raises Mistakes: files have errors.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    with file_errors_first(project), open_environment(project, environment) as session:
        known = session.history()
        session, unread = _with_list_values(session, known)
        files, planned = files_and_table_names(session.project, known)
        late = OutOfOrderCheck(session.project, known)
        version_states = migration_states(files, known.applied, known.intents, known.lock, out_of_order=late)
        others = _colliding(known, files, version_states)
        applied = [m.version for m in version_states.migrations if m.state in COMPLETE_STATES]
        trails = table_versions(planned, version_states, others)
        add_recorded_tables(trails, known, version_states, others)
        rollbacks = {
            e.version.text: e.at
            for e in unpack_log(known.log).entries
            if e.version is not None and e.event is LogEvent.ROLLED_BACK
        }
        lost = _lost_rollbacks(session, known, details)
        lists = {} if unread else _list_progress(session, known)
        return Status(
            project=project.name,
            environment=session.environment.name,
            catalog=session.catalog.identity,
            version=applied[-1] if applied else None,
            migrations=tuple(
                replace(
                    _with_remaining_work(others.get(m.version, m), known, rollbacks),
                    lists=lists.get(m.version, ()),
                    not_restorable=lost.get(m.version, ()) if details else (),
                )
                for m in version_states.migrations
            ),
            tables=_tables(session, trails, known),
            lock=lock_status(known),
            unread_lists=unread,
            hidden_losses=0 if details else len(lost),
        )


def _with_list_values(session: EnvironmentSession, known: History) -> tuple[EnvironmentSession, str | None]:
    """The session, whose project has the values of its lists; and why they cannot be read."""
    if not any(isinstance(source, ListSource) for source in session.project.lists.values()):
        return session, None
    from icemigrate.commands.list_values import load_with_list_values

    try:
        return load_with_list_values(session, known)[0], None
    except Mistakes:
        raise
    except IcemigrateError as error:
        return session, error.message


def _list_progress(session: EnvironmentSession, known: History) -> Mapping[str, tuple[ListProgress, ...]]:
    """The lists of applied templates, by version."""
    if not any(applied.list_values for applied in known.applied):
        return {}
    from icemigrate.commands.list_progress import list_progress

    return list_progress(session.project, known)


def _colliding(
    known: History, files: Sequence[AnyFile], version_states: MigrationStates
) -> Mapping[str, MigrationStatus]:
    """The rows of versions that were applied from other files, by version, as the history describes them."""
    edited = {m.version: m for m in version_states.migrations if m.state == "edited"}
    if not edited:
        return {}
    from icemigrate.commands.edited_files import colliding_files

    return {
        one.file.version.text: replace(
            edited[one.file.version.text], description=one.applied.description, is_other_file=True
        )
        for one in colliding_files(known, files)
        if one.file.version.text in edited
    }


def _lost_rollbacks(
    session: EnvironmentSession, known: History, details: bool
) -> Mapping[str, tuple[str, ...]]:
    """What rollbacks cannot restore; without details, of the newest versions where that is cheap to know."""
    applied = [a.version for a in known.applied if a.state is VersionState.APPLIED]
    try:
        newest = applied if details else applied[-_NEWEST_CHECKED:]
        found = {v: known.undo_record(v) for v in newest if _has_tables_before(known, v)}
    except HistoryError:
        if details:
            raise
        return {}
    records = {v: r for v, r in found.items() if r is not None and restores_values(r)}
    if not records:
        return {}
    from icemigrate.commands.lost_rollbacks import find_lost_rollbacks

    return find_lost_rollbacks(session, known, records, is_short=not details)


def _has_tables_before(known: History, version: Version) -> bool:
    """Whether a version has a table that was there before it; a rollback of the others restores no value."""
    outline = known.undo_outline(version)
    return outline is not None and any(table.declared_before is not None for table in outline.tables)


def _with_remaining_work(
    migration: MigrationStatus, known: History, rollbacks: Mapping[str, datetime]
) -> MigrationStatus:
    """A rolled-back migration with the time of its rollback and the values that it did not restore, and an
    interrupted one with what finishes it.
    """
    if migration.state == "interrupted":
        texts = {i.version.text: interruption_text(i) for i in interrupted_intents(known)}
        return replace(migration, interruption=texts.get(migration.version))
    if migration.state not in ("held", "abandoned"):
        return migration
    return replace(
        migration,
        waiting=waiting_values(known.undo_record(Version.parse(migration.version))),
        rolled_back_at=rollbacks.get(migration.version),
    )


_NEWEST_CHECKED = 10
"""How many of the last applied versions are checked for lost rollbacks without details."""


def _tables(
    session: EnvironmentSession, trails: Mapping[TableName, TableVersions], known: History
) -> tuple[TableStatus, ...]:
    """Every declared table, and other tables with a name that one of them had."""
    state = known.state
    names = sorted({*trails, *state.tables, *state.former})
    recorded = {session.names.table(name): table for name, table in state.tables.items()}
    loaded = load_readable_tables(session.catalog, [session.names.table(n) for n in names], recorded)
    machines = server_managed_predicate(session.catalog.capabilities)
    unsettled = {table for intent in known.intents for table in intent.tables}
    views = _kept_views(session, [t for t in loaded.tables.values() if t is not None])
    rows = []
    for name in names:
        physical = session.names.table(name)
        is_known = name in trails or name in state.tables
        trail = trails.get(name, TableVersions())
        if (reason := loaded.unreadable.get(physical)) is not None:
            rows.append(
                TableStatus(
                    table=str(name),
                    name=str(physical),
                    version=trail.applied,
                    exists=True,
                    pending=tuple(trail.pending),
                    ours=trail.applied is not None,
                    unreadable=reason,
                )
            )
            continue
        found = loaded.tables[physical]
        if found is None and not is_known:
            continue
        made_here = found is not None and project_of(found) == session.project.name
        if not is_known:
            note: str | None = _UNDER_AN_OLD_NAME
        elif (
            found is not None
            and made_here
            and trail.applied is None
            and name not in state.tables
            and not _is_of_unfinished_run(found, known)
        ):
            note = _LOST.format(creator_of(found))
        elif found is not None and owner_of(found) not in (None, session.project.name):
            note = f"it belongs to project `{owner_of(found)}`: no migration of this project can change it"
        else:
            note = _stranger(name, state.tables.get(name), found)
        rows.append(
            TableStatus(
                table=str(name),
                name=str(physical),
                version=trail.applied,
                exists=found is not None,
                pending=tuple(trail.pending),
                ours=trail.applied is not None or made_here,
                note=note,
                old_files=find_old_partition_files(found, session.catalog)
                if found is not None and is_known
                else None,
                differs=note is None
                and str(name) not in unsettled
                and _differs(state.tables.get(name), found, machines),
                views=views.get(physical, ()),
            )
        )
    return tuple(rows)


def _kept_views(
    session: EnvironmentSession, tables: Sequence[Table]
) -> dict[TableName, tuple[KeptViewStatus, ...]]:
    """The views with old column names, by the table's name in the catalog; none where they cannot be read."""
    if not any(is_kept_view_key(key) for table in tables for key in table.properties):
        return {}
    from icemigrate.maintenance.expired_views import find_kept_views

    found: dict[TableName, tuple[KeptViewStatus, ...]] = {}
    with suppress(CatalogError):
        for one in find_kept_views(session.catalog, tables):
            status = KeptViewStatus(str(one.name), one.view.version, one.found is not None, one.until)
            found[one.table] = (*found.get(one.table, ()), status)
    return found


_UNDER_AN_OLD_NAME = (
    "a table of this project had this name: `rollback` cannot restore that name until "
    "this table is moved away"
)


_LOST = (
    "`{}` of this project created it, but the history does not record it (history-lost): "
    "restore the project's history table (`history:` in the project file names it), or "
    "adopt the table with `adopt: true`"
)


def _is_of_unfinished_run(made: Table, known: History) -> bool:
    """Whether an interrupted or running migration uses a table."""
    return any(creator_of(made) == made_by(known.project, i.version.text) for i in known.intents)


def _differs(recorded: Table | None, found: Table | None, machines: ServerManaged) -> bool:
    """Whether others changed declared facts; undeclared columns and properties do not count."""
    if recorded is None or found is None:
        return False
    facts = find_differing_facts(replace(recorded, name=found.name), found, machines)
    return any(fact.managed and not is_expired_reference(fact, recorded) for fact in facts)


def _stranger(declared: TableName, recorded: Table | None, found: Table | None) -> str | None:
    """A note where the catalog's table is not the recorded one."""
    if recorded is None or found is None or None in (recorded.uuid, found.uuid):
        return None
    if recorded.uuid == found.uuid:
        return None
    return (
        f"it is a different table (uuid {found.uuid}) than the recorded one (uuid {recorded.uuid}), which "
        f"was dropped or renamed: {recreated_table_hint(declared)}"
    )
