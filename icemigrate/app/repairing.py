"""``repair``: applied files that were edited, accepted where they declare what they declared before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from icemigrate import versions
from icemigrate.app.declared import state_before, state_without
from icemigrate.app.folding import title
from icemigrate.app.locking import journal
from icemigrate.app.opening import as_mistakes, sound_files
from icemigrate.app.spark import engine_of
from icemigrate.app.world import Opened, opened
from icemigrate.declare.differences import differences, other_fields
from icemigrate.declare.fold import fold
from icemigrate.declare.migration import MigrationFile
from icemigrate.diagnostics import Diagnostic
from icemigrate.frozen import Frozen
from icemigrate.history.applied import Applied
from icemigrate.history.properties import History
from icemigrate.history.record import Record
from icemigrate.history.superseding import repaired
from icemigrate.model.names import TableName
from icemigrate.model.sides import EMPTY_STATE, State, Wanted
from icemigrate.model.table import Table
from icemigrate.project import Project
from icemigrate.results import Repaired, RepairResult, errors_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.history.journal import Journal

_SIDES = ("applied was", "the file says")


class _Edited(Frozen):
    """An applied version and its file, which says something else now."""

    file: MigrationFile
    applied: Applied

    @property
    def repaired(self) -> Repaired:
        return Repaired(self.applied.version.text, self.applied.checksum, self.file.checksum)


def repair(
    project: Project,
    environment: str | None = None,
    *,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> RepairResult:
    """Let edited files of applied versions count as what was applied, where they declare the same.

    Nothing but the history is written: a row for each version that stands for its earlier one.

    :param on_start: called before Spark is started, which only happens where there is something to record.
    :raises Mistakes: a file declares something else than what was applied; nothing was recorded.
    :raises LockHeld: somebody else held the lock all the while.
    :raises HistoryError: the history cannot be used.
    """
    files = sound_files(project)
    with opened(project, environment) as world:
        done: tuple[Repaired, ...] = ()
        if _accepted(world.history(), files):
            if spark is None:
                on_start()
            engine = engine_of(world, spark)
            done = record_repairs(world, files, journal(world, engine, lock_timeout_s))
        return RepairResult(project.name, world.environment.name, done)


def record_repairs(world: Opened, files: Sequence[MigrationFile], journal: Journal) -> tuple[Repaired, ...]:
    """Look again under the lock, and record.

    :raises Mistakes: as :func:`repair`.
    :raises LockHeld: as :func:`repair`.
    """
    from icemigrate.executor import operator

    by = operator()
    with journal.held("repair", by.user, by.host) as held:
        found = _accepted(held.history(), files)
        for edited in found:
            record = _record(world, edited, by.user, by.host, held.run)
            held.supersede([record], partial(repaired, record=record))
    return tuple(edited.repaired for edited in found)


def _accepted(history: History, files: Sequence[MigrationFile]) -> list[_Edited]:
    """The edited files, all of which declare what was applied.

    :raises Mistakes: one of them does not; with what differs.
    """
    known = {a.version: a for a in history.applied if a.standing == "applied"}
    found = [
        _Edited(file, known[file.version])
        for file in files
        if file.version in known and known[file.version].checksum != file.checksum
    ]
    as_mistakes(tuple(told for edited in found for told in _refused(history, edited)))
    return found


def _refused(history: History, edited: _Edited) -> Iterator[Diagnostic]:
    """What an edited file declares otherwise than what was applied."""
    file, applied = edited.file, edited.applied
    if history.undo_record(applied.version) is None:
        # A squash that was only recorded: it began with nothing, and led to what was declared then.
        before = EMPTY_STATE
        later = [a for a in history.applied if a.version > applied.version and a.standing == "applied"]
        after = state_without(history, later).tables
    else:
        before = state_before(history, applied)
        after = _after(history, applied, before)
    folded = fold(before, file)
    wrong = errors_of(folded.diagnostics)
    yield from wrong
    if wrong:
        return
    texts = [
        *_tables(before, after, folded.wanted),
        *(f"the namespace {'.'.join(n)} is new" for n in folded.namespaces - history.state.namespaces),
    ]
    for text in texts:
        yield Diagnostic(
            "edited-file",
            f"{file.version} does not declare any more what was applied: {text}",
            file.place,
            "bring the file back as it was, and write what is new into a new migration",
        )


def _after(history: History, applied: Applied, before: State) -> Mapping[TableName, Table]:
    """The tables as the version left them, by the record that the history keeps."""
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


def _tables(before: State, after: Mapping[TableName, Table], wanted: Sequence[Wanted]) -> Iterator[str]:
    """What differs between the tables as they were applied and as the file leads to them."""
    now = dict(before.tables)
    formerly = {w.name: w.formerly for w in wanted}
    # Where no file says how columns stand, they are recorded as they stood in the catalog.
    placed = {w.name for w in wanted if w.positions or (w.formerly is None and not w.adopt)}
    for w in wanted:
        if w.formerly is not None:
            now.pop(w.formerly, None)
    now |= {w.name: w.table for w in wanted if w.table is not None}
    for name in sorted({*after, *now}):
        old, new = after.get(name), now.get(name)
        yield from differences(old, new, _SIDES, ordered=name in placed)
        if old is not None and new is not None and old is not new:
            origin = formerly.get(name)
            base = before.tables.get(origin) if origin is not None else None
            yield from other_fields(base, old, new)


def _record(world: Opened, edited: _Edited, user: str, host: str, run: str) -> Record:
    now = datetime.now(timezone.utc)
    return Record(
        version=edited.applied.version,
        description=title(edited.file),
        checksum=edited.file.checksum,
        project=world.project.name,
        environment=world.environment.name,
        outcome="repaired",
        started_at=now,
        finished_at=now,
        user=user,
        host=host,
        tool_version=versions.ICEMIGRATE,
        message=f"the file was edited and declares the same; its checksum was {edited.applied.checksum}",
        action="repair",
        run=run,
        fingerprint=edited.file.fingerprint,
    )
