"""``repair``: accepts edited files of applied migrations that still declare the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from icemigrate.commands.history_corrections import correct_history, locked_for_repair
from icemigrate.commands.project_files import load_valid_files, raise_if_errors
from icemigrate.diagnostics import Diagnostic
from icemigrate.execution.command_record import command_record
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.files.read.migration_file import AnyFile, MigrationFile
from icemigrate.files.replay.declared_differences import declared_differences, other_fields
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.frozen import Frozen, replace
from icemigrate.history.declared_state import declared_state_before, declared_state_without
from icemigrate.history.history_properties import History
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.history.recorded_versions import AppliedVersion, VersionState
from icemigrate.history.superseding import with_repair
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState, TableTarget
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.replay import migration_description
from icemigrate.project import Project
from icemigrate.results.command_results import RepairedMigration, RepairResult, errors_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.history.journal import Journal, LockedJournal

_DIFFERENCE_LABELS = ("applied was", "the file says")


class _EditedMigration(Frozen):
    """An applied version and its file, which has other content now."""

    file: MigrationFile
    applied: AppliedVersion

    @property
    def repaired(self) -> RepairedMigration:
        return RepairedMigration(self.applied.version.text, self.applied.checksum, self.file.checksum)


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


def _accepted(history: History, files: Sequence[MigrationFile]) -> list[_EditedMigration]:
    """The edited files, which must declare what was applied.

    :raises Mistakes: one of them does not; with the differences.
    """
    known = {a.version: a for a in history.applied if a.state is VersionState.APPLIED}
    found = [
        _EditedMigration(file, known[file.version])
        for file in files
        if file.version in known and known[file.version].checksum != file.checksum
    ]
    raise_if_errors(tuple(d for edited in found for d in _refused(history, edited)))
    return found


def explain_edits(
    history: History, files: Iterable[AnyFile], mistakes: Iterable[Diagnostic]
) -> Iterator[Diagnostic]:
    """The diagnostics; one of an edited file shows what differs, or that `repair` accepts the file."""
    known = {a.version: a for a in history.applied if a.state is VersionState.APPLIED}
    edited = {
        file.path: _EditedMigration(file, known[file.version])
        for file in files
        if isinstance(file, MigrationFile)
        and file.version in known
        and known[file.version].checksum != file.checksum
    }
    for mistake in mistakes:
        found = edited.get(mistake.place.file) if mistake.place is not None else None
        yield (
            mistake if found is None or mistake.code != "edited-file" else _explained(history, found, mistake)
        )


def _explained(history: History, edited: _EditedMigration, mistake: Diagnostic) -> Diagnostic:
    wrong, texts = _differences(history, edited)
    version = edited.file.version
    if not wrong and not texts:
        return replace(
            mistake,
            message=f"{version} changed after it was applied, and still declares the same",
            hint="restore the file, or accept the edit with `icemigrate repair`",
        )
    shown = [d.message for d in wrong] or list(texts)
    more = len(shown) - _MOST_SHOWN
    listed = "; ".join([*shown[:_MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])])
    return replace(
        mistake,
        message=f"{version} changed after it was applied: {listed}",
        hint="restore the file, and put the change into a new migration",
    )


_MOST_SHOWN = 3
"""How many differences of a file one message shows."""


def _refused(history: History, edited: _EditedMigration) -> Iterator[Diagnostic]:
    """The differences between an edited file and what was applied."""
    wrong, texts = _differences(history, edited)
    yield from wrong
    for text in texts:
        yield Diagnostic(
            "edited-file",
            f"{edited.file.version} no longer declares what was applied: {text}",
            edited.file.place,
            "restore the file, and put new changes into a new migration",
        )


def _differences(
    history: History, edited: _EditedMigration
) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """What is wrong with an edited file on the state before it; else what it declares otherwise, in words."""
    file, applied = edited.file, edited.applied
    if history.undo_record(applied.version) is None:
        # A recorded squash has no state before it, and the declared state after it.
        before = EMPTY_STATE
        later = [
            a for a in history.applied if a.version > applied.version and a.state is VersionState.APPLIED
        ]
        after = declared_state_without(history, later).tables
    else:
        before = declared_state_before(history, applied)
        after = _after(history, applied, before)
    replayed = replay_migration(before, file)
    wrong = errors_of(replayed.diagnostics)
    if wrong:
        return wrong, ()
    texts = (
        *_tables(before, after, replayed.wanted),
        *(f"the namespace {'.'.join(n)} is new" for n in replayed.namespaces - history.state.namespaces),
    )
    return (), texts


def _after(history: History, applied: AppliedVersion, before: DeclaredState) -> Mapping[TableName, Table]:
    """The tables after the version, from its undo record."""
    record = history.undo_record(applied.version)
    assert record is not None
    tables = dict(before.tables)
    for undo in record.tables:
        if undo.declared_before is not None:
            tables.pop(undo.declared_before, None)
    for undo in record.tables:
        if undo.declared_after is not None and undo.after is not None:
            tables[undo.declared_after] = undo.after
    return tables


def _tables(
    before: DeclaredState, after: Mapping[TableName, Table], wanted: Sequence[TableTarget]
) -> Iterator[str]:
    """The differences between the applied tables and those of the file."""
    now = dict(before.tables)
    formerly = {w.name: w.formerly for w in wanted}
    # Where no file asserts positions, the recorded order is that of the catalog.
    placed = {w.name for w in wanted if w.positions or (w.formerly is None and not w.adopt)}
    for w in wanted:
        if w.formerly is not None:
            now.pop(w.formerly, None)
    now |= {w.name: w.table for w in wanted if w.table is not None}
    for name in sorted({*after, *now}):
        old, new = after.get(name), now.get(name)
        yield from declared_differences(old, new, _DIFFERENCE_LABELS, ordered=name in placed)
        if old is not None and new is not None and old is not new:
            origin = formerly.get(name)
            base = before.tables.get(origin) if origin is not None else None
            yield from other_fields(base, old, new)


def _record(session: EnvironmentSession, held: LockedJournal, edited: _EditedMigration) -> HistoryRecord:
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
