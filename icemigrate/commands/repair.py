"""``repair``: accepts edited files of applied migrations that still declare the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from icemigrate.commands.edited_files import (
    EditedMigration,
    edited_migrations,
    find_differences,
    is_other_file,
    version_applied,
)
from icemigrate.commands.history_corrections import correct_history, locked_for_repair
from icemigrate.commands.project_files import load_valid_files, raise_if_errors
from icemigrate.diagnostics import Diagnostic
from icemigrate.execution.command_record import command_record
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.history.history_properties import History
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.history.superseding import with_repair
from icemigrate.planning.replay import migration_description
from icemigrate.project import Project
from icemigrate.results.command_results import RepairedMigration, RepairResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.history.journal import Journal, LockedJournal


def repair(
    project: Project,
    environment: str | None = None,
    *,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> RepairResult:
    """Accept edited files of applied versions, if they declare the same.

    Only the history is written: a row for each version that supersedes its earlier one.

    :param on_start: called before Spark is started, which only happens where there is something to record.
    :raises Mistakes: a file declares something else than was applied; nothing was recorded.
    :raises LockHeld: another process held the lock until the timeout.
    :raises HistoryError: the history cannot be used.
    """
    files = load_valid_files(project)
    with open_environment(project, environment) as session:
        done: tuple[RepairedMigration, ...] = ()
        if _accepted(session.history(), files):
            record = partial(record_repairs, session, files)
            done = correct_history(session, record, spark, on_start, lock_timeout_s)
        return RepairResult(project.name, session.environment.name, done)


def record_repairs(
    session: EnvironmentSession, files: Sequence[MigrationFile], journal: Journal
) -> tuple[RepairedMigration, ...]:
    """Compare again under the lock, and record.

    :raises Mistakes: as :func:`repair`.
    :raises LockHeld: as :func:`repair`.
    """
    with locked_for_repair(journal) as held:
        found = _accepted(held.history(), files)
        for edited in found:
            record = _record(session, held, edited)
            held.supersede([record], partial(with_repair, record=record))
    return tuple(edited.repaired for edited in found)


def _accepted(history: History, files: Sequence[MigrationFile]) -> list[EditedMigration]:
    """The edited files, which must declare what was applied.

    :raises Mistakes: one of them does not; with the differences.
    """
    found = edited_migrations(history, files)
    raise_if_errors(tuple(d for edited in found for d in _refused(history, edited)))
    return found


def _refused(history: History, edited: EditedMigration) -> Iterator[Diagnostic]:
    """The differences between an edited file and what was applied."""
    if is_other_file(history, edited):
        yield version_applied(edited)
        return
    wrong, texts = find_differences(history, edited)
    yield from wrong
    for text in texts:
        yield Diagnostic(
            "edited-file",
            f"{edited.file.version} no longer declares what was applied: {text}",
            edited.file.place,
            "restore the file, and put new changes into a new migration",
        )


def _record(session: EnvironmentSession, held: LockedJournal, edited: EditedMigration) -> HistoryRecord:
    return command_record(
        session,
        held,
        "repair",
        RunOutcome.REPAIRED,
        migration_description(edited.file),
        version=edited.applied.version,
        checksum=edited.file.checksum,
        fingerprint=edited.file.fingerprint,
        message="the file was edited and still declares the same; its checksum was "
        f"{edited.applied.checksum}",
    )
