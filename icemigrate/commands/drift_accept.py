"""``drift --accept``: writes the next migration, which declares other clients' changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from icemigrate.catalog.capabilities import server_managed_predicate
from icemigrate.commands.compared_tables import ComparedTable, compare_recorded_tables, require_readable
from icemigrate.commands.drift import (
    declared_already,
    has_drift,
    pending_state,
)
from icemigrate.commands.edited_files import explain_edits
from icemigrate.commands.migration_draft import MigrationDraft, required_consents, write_migration
from icemigrate.commands.out_of_order import OutOfOrderCheck
from icemigrate.commands.project_files import load_valid_files, raise_if_errors
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import IcemigrateError, Mistakes
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.history.migration_states import MigrationStates, migration_states
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.undo_record import declared_record
from icemigrate.planning.drift.accepted_changes import AcceptedTable, accepted_table_entry
from icemigrate.planning.replay import mentioned_tables
from icemigrate.planning.undo import find_blocking_migrations
from icemigrate.project import Project
from icemigrate.results.drift_results import AcceptResult

_WORDS = "accept drift"
_REFUSAL = "no migration can declare this"


class _AcceptedEntry(Frozen):
    """The accepted changes of one table."""

    name: TableName
    accepted: AcceptedTable


def accept_drift(
    project: Project, environment: str | None = None, tables: Iterable[str] = ()
) -> AcceptResult:
    """Write the migration that declares other clients' changes, undeclared facts included.

    Applied where the changes were made, it finds all of them done and records them; elsewhere it makes them.

    :param tables: declared names; by default all tables.
    :raises UsageError: there is no such environment or table, or the file exists.
    :raises Mistakes: files have errors, or do not fit the history.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    :raises IcemigrateError: the file cannot be written.
    """
    files = load_valid_files(project)
    with open_environment(project, environment) as session:
        history = session.history()
        found = _acceptable(session, history, files, compare_recorded_tables(session, history, tables))
        where = session.environment.name
        if not found.entries:
            return AcceptResult(project.name, where, None, found.notes)
        entries = [dict(e.accepted.entry or {}) for e in found.entries]
        path = write_migration(
            project, found.behind, replace(found.draft, entries=entries), _REFUSAL, begins_lock=True
        )
        between = _in_between(found.states, history, {e.name for e in found.entries})
        ended = _ended_rollbacks(project, history, path)
        return AcceptResult(project.name, where, path, (*found.notes, *between, *ended))


def can_accept(session: EnvironmentSession, history: History, compared: Sequence[ComparedTable]) -> bool:
    """Whether :func:`accept_drift` would write a migration."""
    try:
        return bool(_acceptable(session, history, load_valid_files(session.project), compared).entries)
    except IcemigrateError:
        return False


class _Acceptable(Frozen):
    """The entries that a migration can declare, and everything that writing it needs.

    :param behind: the files that the new one comes after.
    :param draft: the migration, without its entries.
    """

    states: MigrationStates
    behind: tuple[MigrationFile, ...]
    draft: MigrationDraft
    entries: tuple[_AcceptedEntry, ...]
    notes: tuple[str, ...]


def _acceptable(
    session: EnvironmentSession,
    history: History,
    files: Sequence[MigrationFile],
    compared: Sequence[ComparedTable],
) -> _Acceptable:
    project, where = session.project, session.environment.name
    states = migration_states(
        files, history.applied, history.intents, out_of_order=OutOfOrderCheck(project, history, tuple(files))
    )
    # A file that is out of order waits for `rebase`, and comes after the new one then.
    mistakes = [d for d in states.mistakes if d.code != "late-file"]
    raise_if_errors(tuple(explain_edits(history, files, mistakes)))
    behind = _recorded(files, history, states)
    require_readable(compared)
    met, notes = _undeclared(session, history, files, compared)
    entries, kept_out = _entries(session, met)
    title = f"Declare changes made by hand in {where}"
    draft = MigrationDraft((), title, _WORDS, f"changed by hand in {where} already")
    sound, refused = _plannable_entries(project, behind, entries, draft)
    return _Acceptable(states, behind, draft, tuple(sound), (*notes, *kept_out, *refused))


def _recorded(
    files: Sequence[MigrationFile], history: History, version_states: MigrationStates
) -> tuple[MigrationFile, ...]:
    """The files of the applied versions: manual changes were made on top of them."""
    applied = {a.version for a in history.applied if a.state is VersionState.APPLIED}
    squashed = {found.file.version for found in version_states.squashes}
    return tuple(f for f in files if f.version in applied | squashed)


def _undeclared(
    session: EnvironmentSession,
    history: History,
    files: Sequence[MigrationFile],
    met: Sequence[ComparedTable],
) -> tuple[list[ComparedTable], list[str]]:
    """The tables whose current state no pending file declares, and notes about the others."""
    # Without a change, no plan is needed.
    wanted = pending_state(session, history, files) if any(map(has_drift, met)) else None
    left, notes = list[ComparedTable](), list[str]()
    for one in met:
        version = None
        if wanted is not None and has_drift(one):
            version = declared_already(session, history, one, wanted)
        if version is None:
            left.append(one)
        else:
            declared = session.names.declared(one.base.name)
            notes.append(f"{declared}: pending migration {version} already declares this")
    return left, notes


def _entries(
    session: EnvironmentSession, met: Iterable[ComparedTable]
) -> tuple[list[_AcceptedEntry], list[str]]:
    entries, notes = [], []
    for one in met:
        declared = session.names.declared(one.base.name)
        if one.stranger is not None:
            todo = "move that table away first"
            if one.there is None:
                todo = f"`icemigrate repair --adopt {declared}` records that table"
            notes.append(f"{declared}: another table has its name; {todo}")
            continue
        base = replace(one.base, name=declared)
        name = declared if one.there is None else session.names.declared(one.there.name)
        machines = server_managed_predicate(session.catalog.capabilities)
        accepted = accepted_table_entry(base, one.there, name, machines, session.names.adjust)
        notes += accepted.notes
        if accepted.entry is not None:
            entries.append(_AcceptedEntry(declared, accepted))
    return entries, notes


def _plannable_entries(
    project: Project, behind: Sequence[MigrationFile], entries: list[_AcceptedEntry], written: MigrationDraft
) -> tuple[list[_AcceptedEntry], list[str]]:
    """The entries that a migration may contain, and notes about the others."""

    def wrong(some: Sequence[_AcceptedEntry]) -> tuple[Diagnostic, ...]:
        try:
            tried = replace(written, entries=[dict(e.accepted.entry or {}) for e in some])
            required_consents(project, behind, f"{'9' * 18}_tried.yaml", tried, _REFUSAL)
        except Mistakes as error:
            return error.diagnostics
        return ()

    if not entries or not wrong(entries):
        return entries, []
    refused = {e.name: found for e in entries if (found := wrong([e]))}
    notes = [f"{name}: {d.message}" for name, found in refused.items() for d in found]
    return [e for e in entries if e.name not in refused], notes


def _ended_rollbacks(project: Project, history: History, path: str) -> Iterator[str]:
    """Applied versions that share a fact with the written migration.

    :param path: of the written file.
    """
    file = next(f for f in load_valid_files(project) if Path(f.path).name == Path(path).name)
    accepted = declared_record(file.version.text, replay_migration(history.state, file).wanted, history.state)
    for applied in sorted(history.applied, key=lambda a: a.version):
        record = history.undo_record(applied.version) if applied.state is VersionState.APPLIED else None
        if record is None:
            continue
        # Every migration of a table depends on the one that created the table.
        altered = replace(record, tables=tuple(t for t in record.tables if t.before is not None))
        found = find_blocking_migrations(altered, [accepted])
        for blocking in found:
            yield (
                f"after {file.version} is applied, `rollback --only {applied.version}` is refused: both "
                f"change {', '.join(blocking.facts)}"
            )


def _in_between(version_states: MigrationStates, history: History, names: set[TableName]) -> Iterator[str]:
    """Unapplied files of the same tables, which come before it but were written for the recorded state."""
    late = [file for file in version_states.late if isinstance(file, MigrationFile)]
    for file in (*version_states.pending, *late):
        if mentioned_tables([file], history.state) & names:
            state = "late" if file in late else "pending"
            yield (
                f"{file.version} is {state} and changes the same table: `icemigrate rebase "
                f"{file.version}` moves it after the new file; where it uses a name that has changed, "
                "edit it first"
            )
