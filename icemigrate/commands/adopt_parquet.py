"""``adopt-parquet``: existing Parquet files as data files of a table, recorded as a manual change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime, timezone
from os import PathLike

from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_valid_files
from icemigrate.errors import IcemigrateError, UsageError
from icemigrate.execution.command_record import command_record
from icemigrate.execution.engine_choice import history_engine
from icemigrate.execution.environment_session import current_operator
from icemigrate.execution.manual_facts import facts_of
from icemigrate.execution.project_journal import open_journal
from icemigrate.execution.spark_start import engine_of
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_record import RunOutcome
from icemigrate.history.journal import LockedJournal
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import is_gc_enabled
from icemigrate.project import Project
from icemigrate.results.adoption_results import AdoptionResult
from icemigrate.table_data.adopted_files import AdoptedFile, find_files, open_adopted
from icemigrate.table_data.file_adoption import Adoption, adopt_files, undo_adoption
from icemigrate.table_data.input_files import find_input_files
from icemigrate.table_data.load_database import open_load_database
from icemigrate.table_data.schema_inference import schema_of_file
from icemigrate.table_data.table_session import CurrentTable, TableSession, open_tables
from icemigrate.table_data.writable_tables import require_free_name
from icemigrate.wal.storage_path import AnyPath, StoragePath


class AdoptionRequest(Frozen):
    """What to adopt.

    :param path: a file or a folder of this machine, or the URL of one.
    :param table: its name in migration files.
    :param takes_ownership: whether the table may delete the files like its own.
    :param is_undo: whether an adoption of the path is undone.
    """

    path: str | PathLike[str]
    table: str
    takes_ownership: bool = False
    is_undo: bool = False


def adopt_parquet(
    project: Project,
    environment: str | None,
    request: AdoptionRequest,
    *,
    dry_run: bool = False,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> AdoptionResult:
    """Adopt files, or undo it, under the project's lock.

    :param on_start: called before Spark is started, where it alone can write the history.
    :raises UsageError: there is no such environment, table or path.
    :raises Mistakes: files do not fit, or an adoption cannot be undone; nothing was changed.
    :raises ConflictError: other writers were faster each time, or a file is being written.
    :raises LockHeld: another process held the lock until the timeout.
    """
    began = time.monotonic()
    with open_tables(project, environment) as session:
        _require_table(project, session, request)
        if dry_run:
            return _result(request, _change(session, request, dry_run=True), None, began)
        engine = history_engine(
            session.environment, None, lambda: engine_of(session.environment, None, on_start)
        )
        journal = open_journal(session.environment, engine, lock_timeout_s)
        by = current_operator()
        started_at = datetime.now(timezone.utc)
        with journal.hold_lock("alter", by.user, by.host) as held:
            done = _change(session, request, dry_run=False)
            after = session.load(request.table)
            if done.snapshot_id is not None:
                _record(session, held, request, done, after, started_at)
        return _result(request, done, after, began)


def _change(session: TableSession, request: AdoptionRequest, *, dry_run: bool) -> Adoption:
    path = _path(session, request)
    if request.is_undo:
        return undo_adoption(session, request.table, path, dry_run=dry_run)
    return adopt_files(
        session,
        request.table,
        path,
        takes_ownership=request.takes_ownership,
        dry_run=dry_run,
    )


def _path(session: TableSession, request: AdoptionRequest) -> AnyPath:
    return open_adopted(os.fspath(request.path), session.storage_properties)


def _record(
    session: TableSession,
    held: LockedJournal,
    request: AdoptionRequest,
    done: Adoption,
    after: CurrentTable,
    started_at: datetime,
) -> None:
    """Write the event, with the facts by which ``drift`` finds the change."""
    verb = "take out" if request.is_undo else "adopt"
    record = command_record(
        session.environment,
        held,
        "alter",
        RunOutcome.ALTERED,
        f"{after.declared}: {verb} {done.files} Parquet files with {done.rows} rows of {done.root}",
        started_at=started_at,
        tables=(str(after.name),),
        statements=(f"(metadata commit) snapshot {done.snapshot_id}",),
    )
    before, now = _table(done.table), _table(after)
    recorded = held.history().state.tables.get(after.declared, before)
    record = replace(record, facts=tuple(facts_of(recorded, before, now)))
    held.supersede([record], lambda history: history)


def _table(table: CurrentTable) -> Table:
    return table_from_json(table.metadata, table.name)


def _result(
    request: AdoptionRequest, done: Adoption, after: CurrentTable | None, began: float
) -> AdoptionResult:
    properties = (after or done.table).metadata.get("properties") or {}
    return AdoptionResult(
        table=str(done.table.declared),
        name=str(done.table.name),
        path=str(done.root),
        is_undo=request.is_undo,
        files=done.files,
        rows=done.rows,
        size_bytes=done.size,
        already_adopted=done.there,
        empty=done.empty,
        snapshot_id=done.snapshot_id,
        sets_name_mapping=done.files > 0 and done.mapping_set,
        disables_gc=done.files > 0 and done.gc_disabled,
        gc_enabled=is_gc_enabled(properties) and not done.gc_disabled,
        unread=done.unread,
        done=after is not None,
        elapsed_ms=round((time.monotonic() - began) * 1000),
    )


def _require_table(project: Project, session: TableSession, request: AdoptionRequest) -> None:
    """Require the table, and say how to create it.

    :raises UsageError: there is none.
    """
    declared = session.parse(request.table)
    if session.find(declared) is not None:
        return
    try:
        session.load(request.table)
    except UsageError as error:
        if request.is_undo:
            raise
        require_free_name(session.environment, declared)
        path = _path(session, request)
        raise UsageError(error.message, _creation_hint(project, request.table, path)) from error


def _creation_hint(project: Project, table: str, path: AnyPath) -> str:
    """How to create a table for files, as it is known to work."""
    if _is_declared(project, table):
        return "a migration declares it: `icemigrate apply` creates it"
    file = next((one for one in find_files(path).files if _has_readable_columns(one)), None)
    if file is None:
        return "declare it in a migration, with the columns of the files"
    writes = f"`icemigrate diff {file.path} --table {table}` writes a migration with its columns"
    if any(key.is_below for key in file.keys):
        return f"{writes}; add those of the folders, and `partition_by`"
    return f"{writes}; or create it: `icemigrate table create {table} --schema {file.path}`"


def _is_declared(project: Project, table: str) -> bool:
    if not project.migrations_dir.exists():
        return False
    plans = plan_from_empty(project, load_valid_files(project, names=(table,))).plans
    return any(str(one.declared) == table and one.wanted is not None for plan in plans for one in plan.tables)


def _has_readable_columns(file: AdoptedFile) -> bool:
    """Whether ``diff`` and ``table create`` read the columns of a file."""
    if isinstance(file.path, StoragePath):
        return False
    if any(character.isspace() or character in "'\"*?[`" for character in str(file.path)):
        return False  # a shell or a pattern reads the path otherwise
    try:
        with open_load_database() as db:
            (one,) = find_input_files([str(file.path)], db.folder)
            return one.format == "parquet" and bool(schema_of_file(one, db).fields)
    except (IcemigrateError, ValueError):
        return False
