"""What the commands return that tell where things stand and what happened: status, lock, history.

As :mod:`~icemigrate.results`, of which it is the other half.
"""

from __future__ import annotations

from datetime import datetime

from icemigrate.frozen import Frozen
from icemigrate.model.layout import OldShare


class MigrationStatus(Frozen):
    """Where one migration stands.

    :param state: ``applied``, ``pending``, ``held`` (rolled back), ``running`` (somebody is at it just now),
        ``interrupted`` (neither done nor undone), ``edited`` (applied, and
        its file says something else now), ``missing`` (applied, and there is no file) or ``late`` (not
        applied, though a higher one is, with which it shares a fact), ``unrecorded`` (a squash of files that
        are all applied) or ``partial`` (a squash of files of which only some are).
    :param applied_at: in UTC; ``None`` where it is not applied.
    :param stays: of a held one, what the rollback left of what it did, each in words.
    """

    version: str
    description: str
    state: str
    applied_at: datetime | None = None
    stays: tuple[str, ...] = ()


class TableStatus(Frozen):
    """Where one table stands.

    :param table: its declared name (that of the files where nothing of it was applied yet).
    :param name: its name in the catalog.
    :param version: the last applied migration that touched it; ``None`` where none was.
    :param exists: whether the catalog has it.
    :param pending: versions of pending migrations that mention it.
    :param ours: whether a migration of this project made it, be it one that was interrupted.
    :param note: where another table has the name, or the history knows nothing of this one: which, and what
        to do; ``None`` elsewhere.
    :param old_files: the files that lie otherwise than it is partitioned now; ``None`` where none does, or
        nobody could tell.
    :param differs: whether others changed what a migration declared of it; ``drift`` tells what.
    """

    table: str
    name: str
    version: str | None
    exists: bool
    pending: tuple[str, ...] = ()
    ours: bool = False
    note: str | None = None
    old_files: OldShare | None = None
    differs: bool = False


class LockStatus(Frozen):
    """Who holds a project's lock.

    :param since: when it was taken, by the holder's clock.
    :param seen_at: when the holder was heard of last, by his clock.
    :param action: what he holds it for: ``apply`` or ``rollback``.
    :param step: what he is doing; empty before he begins.
    :param words: all of it in one phrase.
    """

    user: str
    host: str
    pid: int
    since: datetime
    seen_at: datetime | None
    action: str
    step: str
    words: str


class UnlockResult(Frozen):
    """What ``unlock`` did.

    :param lock: who held the lock; ``None`` where nobody did.
    :param taken: whether it was taken away from him.
    """

    project: str
    environment: str
    lock: LockStatus | None
    taken: bool


class Status(Frozen):
    """Where a project stands in one environment.

    :param version: the last applied migration; ``None`` where none was.
    :param lock: who changes tables just now; ``None`` where nobody does.
    """

    project: str
    environment: str
    catalog: str
    version: str | None
    migrations: tuple[MigrationStatus, ...] = ()
    tables: tuple[TableStatus, ...] = ()
    lock: LockStatus | None = None

    def count(self, *states: str) -> int:
        """How many migrations are in one of the states."""
        return sum(m.state in states for m in self.migrations)


class HistoryEntry(Frozen):
    """What the history says of one version.

    :param standing: ``applied``, ``held`` (rolled back, waits for a redo) or ``interrupted``.
    :param at: when it was last applied, in UTC.
    :param by: who did it.
    """

    version: str
    description: str
    standing: str
    at: datetime
    by: str
    duration_ms: int
    checksum: str


class HistoryEvent(Frozen):
    """One thing that happened.

    :param event: ``applied``; ``redone`` (applied again after it was rolled back); ``rolled_back``;
        ``failed`` (all that was done was undone again); ``interrupted`` (neither done nor undone);
        ``running`` (going on just now); ``repaired``; ``squashed``; ``baselined``; ``unlocked``;
        ``maintained``; ``reconciled`` (tables were led back to what was recorded).
    :param version: ``None`` where it is about no single one.
    :param at: when it ended, in UTC; when it began, where it has no end.
    :param duration_ms: ``None`` where it has no end, or took no time.
    :param run: the same for all that one call of icemigrate did; as in the rows of the history.
    :param message: why it failed, or what else is to be said.
    """

    event: str
    version: str | None
    description: str
    at: datetime
    by: str
    host: str
    duration_ms: int | None = None
    run: str = ""
    message: str | None = None


class HistoryResult(Frozen):
    """Who did what, when, and how long it took.

    :param entries: where each version stands; by version.
    :param events: what happened, the first first.
    :param earlier: how many events came before these; only the rows of the history tell of them.
    """

    project: str
    environment: str
    entries: tuple[HistoryEntry, ...] = ()
    events: tuple[HistoryEvent, ...] = ()
    earlier: int = 0
