"""Writes the history while a plan runs: intents, the current step and outcomes, all under the project's lock.

Intents and outcomes are rows, for people; the data that planning and undo need are properties, written by the
same commits.  A version is *interrupted* from its intent until its outcome, so a process that dies needs to
write nothing.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from threading import Thread
from types import MappingProxyType

from msgspec import UNSET

from icemigrate.errors import HeadMoved, LockHeld
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, replace
from icemigrate.history.continued_records import OtherTables, other_tables, with_first_states
from icemigrate.history.event_log import EventLog, log_with_record, pack_log, unpack_log
from icemigrate.history.head_snapshot import LockInfo
from icemigrate.history.history_io import HistoryWriter, history_of, missing_settings
from icemigrate.history.history_properties import History, HistoryDecoder, encode_history, property_changes
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.history.project_lock import LOCK_LEASE_S, Heartbeat, Lock, boot_clock
from icemigrate.history.recorded_versions import AppliedVersion, Intent, VersionState
from icemigrate.history.undo_record_codec import UndoRecord
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import last_copies_of, merged_copies, with_last_copies
from icemigrate.planning.plan import Direction
from icemigrate.system.process_identity import process_identity

NO_UNDO: Mapping[str, UndoRecord] = MappingProxyType({})
LOCK_TIMEOUT_S = 120.0
"""Default time to wait for the lock: longer than a lease, so that a run after a crash succeeds."""


class Journal(Frozen):
    """The journal of one project in one catalog.

    :param lease_s: seconds without renewal after which another process takes the lock over.
    :param timeout_s: how long to wait for the lock of another process.
    :param clock: monotonic seconds.
    """

    writer: HistoryWriter
    lease_s: float = LOCK_LEASE_S
    timeout_s: float = LOCK_TIMEOUT_S
    clock: Callable[[], float] = boot_clock

    @contextmanager
    def hold_lock(
        self,
        action: str,
        user: str,
        host: str,
        on_wait: Callable[[LockInfo], None] = lambda lock: None,
        wait: Callable[[float], None] = time.sleep,
    ) -> Iterator[LockedJournal]:
        """A block in which only this process changes the project's tables.

        :param action: the command, such as ``apply``.
        :param on_wait: called with the holder of the lock while this process waits.
        :param wait: waits some seconds; may raise :class:`~icemigrate.errors.Stopped`.
        :raises LockHeld: another process held the lock until the timeout.
        :raises HistoryError: the history cannot be used.
        """
        self.writer.prepare()
        mine = LockInfo(
            run=secrets.token_hex(8),
            user=user,
            host=host,
            pid=os.getpid(),
            since=datetime.now(timezone.utc),
            lease_s=self.lease_s,
            action=action,
            process=process_identity(),
        )
        lock = Lock(self.writer, mine, self.clock, wait)
        gone = lock.acquire(self.timeout_s, on_wait)
        try:
            with Heartbeat(lock):
                yield LockedJournal(self.writer, lock, gone)
        finally:
            _release(lock)

    def unlock(self, head: int | None, record: HistoryRecord) -> None:
        """Remove the lock from its holder.

        :param head: of the history when its holder was shown.
        :param record: the row with the user who removed it.
        :raises LockHeld: the head moved since, so the holder is alive.
        """
        table, writer = self.writer.table(), self.writer
        history = history_of(table, writer.name, writer.project, accepts_damaged_lock=True)
        to_set, to_remove = property_changes(
            table.properties, encode_history(_logged(history, history, record))
        )
        lock = history.lock
        # Only the lock names the tables of a reconcile.  Without a lease, the next process takes it over at
        # once and fences these tables.
        left = (
            replace(lock, run="unlocked", lease_s=0.0, step="") if lock is not None and lock.tables else None
        )
        try:
            self.writer.swap(head, "unlocked", left, [record.row()], to_set, to_remove)
        except HeadMoved as error:
            raise LockHeld(
                "the lock was renewed meanwhile: its holder is alive", "stop that process first"
            ) from error


def _release(lock: Lock) -> None:
    """Release the lock, whatever the state of the calling thread's connection to the JVM.

    A second Ctrl-C may have interrupted a call; a new thread has a connection of its own.
    """

    def release() -> None:
        with suppress(Exception):  # where the catalog or the JVM is gone, the lock ends with its lease
            lock.release()

    thread = Thread(target=release, name="icemigrate-release")
    thread.start()
    thread.join()


@dataclass(slots=True)
class LockedJournal:
    """The journal while its lock is held.

    :param previous_holder: the holder that lost the lock because its lease ended; ``None`` where the lock was
        free.
    """

    writer: HistoryWriter
    lock: Lock
    previous_holder: LockInfo | None = None
    _before: History | None = None
    _decoder: HistoryDecoder = field(default_factory=HistoryDecoder, repr=False)
    _log: tuple[str, EventLog] = ("", EventLog())
    _others: OtherTables = field(default_factory=OtherTables)

    @property
    def run(self) -> str:
        """The word that all rows of this run share."""
        return self.lock.holder.run

    def history(self) -> History:
        """The current history.

        :raises HistoryError: it cannot be used.
        """
        return self._history_of(self.writer.table())

    def _history_of(self, table: Table) -> History:
        return history_of(table, self.writer.name, self.writer.project, decode=self._decoder.decode)

    def require(self) -> None:
        """Require that this process holds the lock.

        :raises LockLost: it does not.
        """
        self.lock.require()

    def may_change(self, tables: Iterable[str]) -> None:
        """Add tables to the lock, with its next write, that may change without an intent of a version.

        :param tables: their names in the catalog.
        """
        self.lock.announce(tuple(dict.fromkeys((*self.lock.holder.tables, *tables))))

    def step(self, text: str) -> None:
        """Write the current step.

        :raises LockLost: this process does not hold the lock any more.
        """
        self.lock.step(text)

    def begin(self, intent: Intent, record: HistoryRecord, undo: UndoRecord) -> UndoRecord:
        """Write the intent, before the first change.

        If an earlier run of the version was interrupted, the states before *that* run stay, because an undo
        goes back to them.  If the version is applied, its record keeps the tables of the earlier runs.

        :param record: the row, its outcome ``started``.
        :param undo: the tables before the migration, and their predicted states after it.
        :returns: the tables before the migration, as its first run saw them.
        :raises LockLost: this process does not hold the lock any more; nothing was written.
        """
        version = intent.version
        before = self._before = self.history()
        earlier = next((i for i in before.intents if i.version == version), None)
        kept = before.undo_record(version)
        copies = last_copies_of(kept)
        if intent.direction is Direction.APPLY:
            undo = with_last_copies(undo, copies)
        if earlier is not None and kept is not None and intent.direction is Direction.APPLY:
            undo = with_first_states(kept, undo)
        is_unfinished = earlier is not None and (
            earlier.direction is Direction.APPLY or earlier.undoes_unfinished
        )
        new = replace(
            intent,
            was=earlier.was if earlier else before.of(version),
            undoes_unfinished=is_unfinished and intent.direction is Direction.ROLLBACK,
        )
        self._others = other_tables(kept, undo, new)

        def change(history: History) -> History:
            return replace(
                history.with_undo_records(begun),
                applied=_with(history, version, _applied_version(record, version, VersionState.INTERRUPTED)),
                intents=(*_others(history, version), new),
            )

        # A rollback keeps the record that it undoes: the next run continues with it, and so does a redo.
        # Values that will depend on a snapshot are noted before the columns come back without them.
        begun: dict[str, UndoRecord] = {}
        if intent.direction is Direction.APPLY:
            begun = {version.text: self._others.added_to(undo)}
        elif kept is not None and last_copies_of(undo):
            begun = {version.text: with_last_copies(kept, merged_copies(last_copies_of(undo), copies))}
        self._write("started", [record], change, f"{version}: begins")
        return undo

    def correct_undo_record(self, version: Version, undo: UndoRecord) -> None:
        """Write a corrected undo record of a version that has begun.

        :raises LockLost: this process does not hold the lock any more; nothing was written.
        """
        records = {version.text: self._others.added_to(undo)}
        self._write("corrected", [], lambda history: history.with_undo_records(records))

    def end(
        self,
        record: HistoryRecord,
        state: DeclaredState | None = None,
        undo: UndoRecord | None = None,
        others: Mapping[str, UndoRecord] = NO_UNDO,
    ) -> None:
        """Write the outcome.

        :param record: the row; ``applied``, ``rolled_back``, ``failed`` (all is as it was before) or
            ``interrupted`` (neither).
        :param state: the declared state after it; ``None`` where it stays.
        :param undo: the version's undo record; ``None`` where it stays.
        :param others: changed undo records of other versions.
        :raises LockLost: this process does not hold the lock any more; nothing was written.
        """
        version = record.version
        assert version is not None, "an outcome is of one version"

        def change(history: History) -> History:
            history = replace(history, state=history.state if state is None else state)
            own = {} if undo is None else {version.text: self._others.added_to(undo)}
            history = history.with_undo_records({**own, **others})
            if record.outcome is RunOutcome.INTERRUPTED:
                return history
            return self._ended(history, record, version)

        self._write(record.outcome.value, [record], change)

    def supersede(self, records: Sequence[HistoryRecord], change: Callable[[History], History]) -> None:
        """Write rows that supersede earlier ones, and the changed properties; no table changes.

        :param change: see :mod:`icemigrate.history.superseding`.
        :raises LockLost: this process does not hold the lock any more; nothing was written.
        """
        self._write(records[-1].outcome.value, records, change)

    def _ended(self, history: History, record: HistoryRecord, version: Version) -> History:
        intent = next((i for i in history.intents if i.version == version), None)
        was = None if intent is None else intent.was
        if record.outcome is RunOutcome.FAILED:
            return self._as_before(history, version, was)
        if record.outcome is RunOutcome.EXTENDED:
            assert was is not None, "only an applied version is extended"
            now = replace(was, lists=record.lists)
        elif record.outcome is RunOutcome.APPLIED:
            now = _applied_version(record, version, VersionState.APPLIED)
            now = replace(now, remaining_effects=() if was is None else was.remaining_effects)
        else:
            now = replace(
                was or _applied_version(record, version, VersionState.ROLLED_BACK),
                state=VersionState.ROLLED_BACK,
                remaining_effects=_remaining_effects(record, intent),
            )
        return replace(history, applied=_with(history, version, now), intents=_others(history, version))

    def _as_before(self, history: History, version: Version, was: AppliedVersion | None) -> History:
        """The history without the version's intent: that of this run and, if it applied the rest of an
        earlier run, of that run.
        """
        before = self._before
        assert before is not None, "what ends was begun"
        undo = {v: packed for v, packed in history.undo.items() if v != version.text}
        bases = {**before.bases, **history.bases}
        now = next((i for i in history.intents if i.version == version), None)
        again = next((i for i in before.intents if i.version == version), None)
        intents = _others(history, version)
        if again is not None and now is not None and now.direction is Direction.ROLLBACK:
            # An undo that did not begin: what it was to undo is as interrupted as it was.
            was, intents = before.of(version), (*intents, again)
        if was is not None and version.text in before.undo:
            undo[version.text] = before.undo[version.text]
        return replace(history, applied=_with(history, version, was), intents=intents, undo=undo, bases=bases)

    def _write(
        self,
        event: str,
        records: Sequence[HistoryRecord],
        change: Callable[[History], History],
        step: str | None = None,
    ) -> None:
        table = self.writer.table()
        history = self._history_of(table)
        after = change(history)
        packed, log = self._log
        if packed != history.log:
            log = unpack_log(history.log)
        for record in records:
            log = log_with_record(log, record, _begun(history, record))
        after = replace(after, log=pack_log(log))
        properties = encode_history(after, (table.properties, history))
        to_set, to_remove = property_changes(table.properties, properties)
        to_set |= missing_settings(table.properties)
        self.lock.write(event, [record.row() for record in records], to_set, to_remove, step)
        written = {key: value for key, value in table.properties.items() if key not in to_remove} | to_set
        self._decoder.keep(written, after)
        self._log = after.log, log


def _remaining_effects(record: HistoryRecord, intent: Intent | None) -> tuple[str, ...]:
    """What is left of a rolled-back version: the undo of a redo also leaves what there was before the redo.

    The record of a refill after a rollback has what is left.
    """
    if intent is None or (was := intent.was) is None:
        return record.remaining_effects
    if was.state is VersionState.ROLLED_BACK and not intent.undoes_unfinished:
        return record.remaining_effects
    return tuple(dict.fromkeys((*was.remaining_effects, *record.remaining_effects)))


def _logged(history: History, before: History, record: HistoryRecord) -> History:
    return replace(
        history, log=pack_log(log_with_record(unpack_log(before.log), record, _begun(before, record)))
    )


def _begun(history: History, record: HistoryRecord) -> Intent | None:
    return next((i for i in history.intents if i.version == record.version), None)


def _others(history: History, version: Version) -> tuple[Intent, ...]:
    return tuple(i for i in history.intents if i.version != version)


def _with(history: History, version: Version, new: AppliedVersion | None) -> tuple[AppliedVersion, ...]:
    others = tuple(a for a in history.applied if a.version != version)
    return others if new is None else (*others, new)


def _applied_version(record: HistoryRecord, version: Version, state: VersionState) -> AppliedVersion:
    return AppliedVersion(
        version=version,
        checksum=record.checksum,
        description=record.description,
        applied_at=record.finished_at or record.started_at,
        applied_by=record.user,
        duration_ms=record.duration_ms,
        state=state,
        fingerprint=record.fingerprint,
        since=record.since,
        lists=record.lists or UNSET,
    )
