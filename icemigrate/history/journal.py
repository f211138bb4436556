"""The journal: what is meant to be done, what is being done, and how it ended; all under the project's lock.

Intent and outcome are rows, for people; what planning and undoing need of them are properties, written by the
same commits.  A version that was begun stands as *interrupted* until its outcome says otherwise, so a process
that dies has nothing left to say.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from threading import Thread
from types import MappingProxyType

from icemigrate.declare.version import Version
from icemigrate.errors import HeadMoved, IcemigrateError, LockHeld
from icemigrate.frozen import Frozen, replace
from icemigrate.history.applied import Applied, Standing
from icemigrate.history.head import LockInfo
from icemigrate.history.heartbeat import Heartbeat
from icemigrate.history.intent import Intent
from icemigrate.history.lock import LEASE_S, Lock, boot_clock
from icemigrate.history.log import logged, pack, unpack
from icemigrate.history.properties import History, changes, encode
from icemigrate.history.read import history_of
from icemigrate.history.record import Record
from icemigrate.history.undo_record import UndoRecord, pack_undo
from icemigrate.history.write import HistoryWriter
from icemigrate.model.sides import State
from icemigrate.model.undo_record import last_copies_of, merged_copies, with_last_copies
from icemigrate.plan import Direction

NO_UNDO: Mapping[str, UndoRecord] = MappingProxyType({})
TIMEOUT_S = 120.0
"""How long somebody waits for the lock, unless told otherwise: longer than a lease, so that a run after a
crash goes on by itself."""


class Journal(Frozen):
    """The journal of one project in one catalog.

    :param lease_s: how long this process may be silent before another takes the lock over.
    :param timeout_s: how long to wait for somebody else's lock.
    :param clock: seconds that never go back.
    """

    writer: HistoryWriter
    lease_s: float = LEASE_S
    timeout_s: float = TIMEOUT_S
    clock: Callable[[], float] = boot_clock

    @contextmanager
    def held(
        self,
        action: str,
        user: str,
        host: str,
        on_wait: Callable[[LockInfo], None] = lambda lock: None,
        wait: Callable[[float], None] = time.sleep,
    ) -> Iterator[Held]:
        """A block in which this process alone changes the project's tables.

        :param action: what for, e.g. ``apply``.
        :param on_wait: told who holds the lock, while this process waits.
        :param wait: waits some seconds; may raise when the user asks to stop.
        :raises LockHeld: somebody else held the lock all the while.
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
        )
        lock = Lock(self.writer, mine, self.clock, wait)
        gone = lock.acquire(self.timeout_s, on_wait)
        try:
            with Heartbeat(lock):
                yield Held(self.writer, lock, gone)
        finally:
            _release(lock)

    def unlock(self, head: int | None, record: Record) -> None:
        """Take the lock away from whoever holds it.

        :param head: of the history as it was when its holder was shown.
        :param record: the row that says who did it.
        :raises LockHeld: the head moved since, so the holder is alive.
        """
        table = self.writer.table()
        history = history_of(table, self.writer.name, self.writer.project)
        to_set, to_remove = changes(table.properties, encode(_logged(history, history, record)))
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
    """Give the lock back, whatever state the calling thread's connection to the JVM is in.

    A second Ctrl-C may have torn a call apart; a new thread has a connection of its own.
    """

    def release() -> None:
        with suppress(IcemigrateError):  # where the catalog is gone, the lease will end the lock
            lock.release()

    thread = Thread(target=release, name="icemigrate-release")
    thread.start()
    thread.join()


@dataclass(slots=True)
class Held:
    """The journal while its lock is held.

    :param gone: whose lock was taken over, since he was not heard of any more; ``None`` where it was free.
    """

    writer: HistoryWriter
    lock: Lock
    gone: LockInfo | None = None
    _before: History | None = None

    @property
    def run(self) -> str:
        """The word that all rows of this run share."""
        return self.lock.mine.run

    def history(self) -> History:
        """What the history says now.

        :raises HistoryError: it cannot be used.
        """
        return self.writer.read()

    def require(self) -> None:
        """Go on only while the lock is ours.

        :raises LockLost: it is not any more.
        """
        self.lock.require()

    def may_change(self, tables: Iterable[str]) -> None:
        """Have the lock say, from its next write on, which tables may change without an intent of a version.

        :param tables: their names in the catalog.
        """
        self.lock.announce(tuple(dict.fromkeys((*self.lock.mine.tables, *tables))))

    def step(self, text: str) -> None:
        """Say what is being done now.

        :raises LockLost: the lock is not ours any more.
        """
        self.lock.step(text)

    def begin(self, intent: Intent, record: Record, undo: UndoRecord) -> UndoRecord:
        """Write the intent, before the first change.

        Where the version was interrupted before, the states before *that* run stay: they are what there is to
        go back to.

        :param record: the row, its outcome ``started``.
        :param undo: the tables before the migration, and what they are foreseen to be after it.
        :returns: the tables before the migration, as the first run of it found them.
        :raises LockLost: the lock is not ours any more; nothing was written.
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
        new = replace(intent, was=earlier.was if earlier else before.of(version))

        def change(history: History) -> History:
            return replace(
                history,
                applied=_with(history, version, _standing(record, version, "interrupted")),
                intents=(*_others(history, version), new),
                undo={**history.undo, **begun},
            )

        # A rollback keeps what the version is undone from: it is gone on with by that, and so is a redo.
        # Values that will depend on a snapshot are noted before the columns come back without them.
        begun: dict[str, str] = {}
        if intent.direction is Direction.APPLY:
            begun = {version.text: pack_undo(undo)}
        elif kept is not None and last_copies_of(undo):
            begun = {
                version.text: pack_undo(with_last_copies(kept, merged_copies(last_copies_of(undo), copies)))
            }
        self._write("started", [record], change, f"{version}: begins")
        return undo

    def correct(self, version: Version, undo: UndoRecord) -> None:
        """Write what a version that was begun is undone from, once it is known better.

        :raises LockLost: the lock is not ours any more; nothing was written.
        """
        packed = {version.text: pack_undo(undo)}
        self._write("corrected", [], lambda history: replace(history, undo={**history.undo, **packed}))

    def end(
        self,
        record: Record,
        state: State | None = None,
        undo: UndoRecord | None = None,
        others: Mapping[str, UndoRecord] = NO_UNDO,
    ) -> None:
        """Write the outcome.

        :param record: the row; ``applied``, ``rolled_back``, ``failed`` (all is as it was before) or
            ``interrupted`` (neither).
        :param state: the declared state after it; ``None`` where it stays.
        :param undo: what the version is undone from now; ``None`` where that stays.
        :param others: what other versions are undone from now, where that changed.
        :raises LockLost: the lock is not ours any more; nothing was written.
        """
        version = record.version
        assert version is not None, "an outcome is of one version"

        def change(history: History) -> History:
            history = replace(history, state=history.state if state is None else state)
            if undo is not None:
                history = replace(history, undo={**history.undo, version.text: pack_undo(undo)})
            packed = {v: pack_undo(record) for v, record in others.items()}
            history = replace(history, undo={**history.undo, **packed})
            if record.outcome == "interrupted":
                return history
            return self._ended(history, record, version)

        self._write(record.outcome, [record], change)

    def supersede(self, records: Sequence[Record], change: Callable[[History], History]) -> None:
        """Write rows that stand for earlier ones, and what follows from them; no table is touched.

        :param change: see :mod:`icemigrate.history.superseding`.
        :raises LockLost: the lock is not ours any more; nothing was written.
        """
        self._write(records[-1].outcome, records, change)

    def _ended(self, history: History, record: Record, version: Version) -> History:
        intent = next((i for i in history.intents if i.version == version), None)
        was = None if intent is None else intent.was
        if record.outcome == "failed":
            return self._as_before(history, version, was)
        if record.outcome == "applied":
            now = _standing(record, version, "applied")
        else:
            now = replace(was or _standing(record, version, "held"), standing="held", stays=record.stays)
        return replace(history, applied=_with(history, version, now), intents=_others(history, version))

    def _as_before(self, history: History, version: Version, was: Applied | None) -> History:
        """The history as if the version had not been begun: not by this run; and where this one applied what
        an earlier run had left, not by that one either."""
        before = self._before
        assert before is not None, "what ends was begun"
        undo = {v: packed for v, packed in history.undo.items() if v != version.text}
        now = next((i for i in history.intents if i.version == version), None)
        again = next((i for i in before.intents if i.version == version), None)
        intents = _others(history, version)
        if again is not None and now is not None and now.direction is Direction.ROLLBACK:
            # An undo that did not begin: what it was to undo is as interrupted as it was.
            was, intents = before.of(version), (*intents, again)
        if was is not None and version.text in before.undo:
            undo[version.text] = before.undo[version.text]
        return replace(history, applied=_with(history, version, was), intents=intents, undo=undo)

    def _write(
        self,
        event: str,
        records: Sequence[Record],
        change: Callable[[History], History],
        step: str | None = None,
    ) -> None:
        table = self.writer.table()
        history = history_of(table, self.writer.name, self.writer.project)
        after = change(history)
        log = unpack(history.log)
        for record in records:
            log = logged(log, record, _begun(history, record))
        to_set, to_remove = changes(table.properties, encode(replace(after, log=pack(log))))
        self.lock.write(event, [record.row() for record in records], to_set, to_remove, step)


def with_first_states(first: UndoRecord, now: UndoRecord) -> UndoRecord:
    """The undo record of a migration that is gone on with: before it as the first run found its tables."""
    known = {t.declared: t for t in first.tables}
    tables = []
    for table in now.tables:
        before = known.get(table.declared)
        if before is not None:
            table = replace(
                table,
                declared_before=before.declared_before,
                before=before.before,
                actual_before=before.actual_before,
                trash=table.trash or before.trash,
                rows_changed=table.rows_changed or before.rows_changed,
                created=before.created,
                is_unproved=before.is_unproved,
            )
        tables.append(table)
    made = dict.fromkeys((*first.namespaces, *now.namespaces))
    return replace(now, tables=tuple(tables), namespaces=tuple(made))


def _logged(history: History, before: History, record: Record) -> History:
    return replace(history, log=pack(logged(unpack(before.log), record, _begun(before, record))))


def _begun(history: History, record: Record) -> Intent | None:
    return next((i for i in history.intents if i.version == record.version), None)


def _others(history: History, version: Version) -> tuple[Intent, ...]:
    return tuple(i for i in history.intents if i.version != version)


def _with(history: History, version: Version, new: Applied | None) -> tuple[Applied, ...]:
    others = tuple(a for a in history.applied if a.version != version)
    return others if new is None else (*others, new)


def _standing(record: Record, version: Version, standing: Standing) -> Applied:
    return Applied(
        version=version,
        checksum=record.checksum,
        description=record.description,
        applied_at=record.finished_at or record.started_at,
        applied_by=record.user,
        duration_ms=record.duration_ms,
        standing=standing,
        fingerprint=record.fingerprint,
        since=record.since,
    )
