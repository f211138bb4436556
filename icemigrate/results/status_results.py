"""Results of the commands that show states and events: status, lock, history.

The other results are in :mod:`~icemigrate.results.command_results`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from icemigrate.frozen import Frozen
from icemigrate.iceberg.partition_evolution import OldSpecFiles
from icemigrate.results.document_types import (
    Count,
    EventName,
    MigrationStateName,
    Milliseconds,
    VersionText,
    one_of,
)


class WaitingValues(Frozen):
    """Values of dropped columns that no row has since a rollback without a refill.

    :param table: its declared name in the rolled-back migration.
    :param columns: the paths of the columns.
    :param kept_in: the tag that keeps the values; the id of the snapshot where no tag does.
    """

    table: str
    columns: tuple[str, ...]
    kept_in: str

    @property
    def listed(self) -> str:
        """The columns, in words."""
        return ", ".join(f"`{column}`" for column in self.columns)


class ListProgress(Frozen):
    """How far a migration is applied to the values of a list, such as tenants.

    :param list: its name in the project file.
    :param applied: how many of its values have the migration.
    :param values: how many values it has now.
    :param new: values for which `apply` extends the migration.
    :param left: values that have the migration, left the list, and still have a table.
    """

    list: str
    applied: Count
    values: Count
    new: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class MigrationStatus(Frozen):
    """The state of one migration.

    :param description: of the migration.
    :param state: ``applied``, ``pending``, ``held`` (rolled back), ``abandoned``
        (rolled back, and excluded from `--redo`), ``running`` (a process runs it),
        ``interrupted`` (neither applied nor undone), ``edited`` (applied, and its file has changed),
        ``missing`` (applied, and its file is gone) or ``late`` (not applied, while a later one that shares a
        fact is), ``unrecorded`` (a squash of files that are all applied) or ``partial`` (a squash of files of
        which only some are).
    :param applied_at: in UTC; ``None`` where it is not applied.
    :param stays: effects of a rolled-back migration that remain, as phrases.
    :param waiting: values that the rollback of a rolled-back migration did not restore.
    :param rolled_back_at: when it was rolled back, in UTC; ``None`` where it is not, or where the time is
        unknown.
    :param not_restorable: what a rollback can no longer restore, as phrases; only with details.
    :param interruption: of an interrupted migration: which run was interrupted, and what finishes it.
    :param lists: the lists of an applied template whose values are known.
    :param is_other_file: whether it is ``edited`` because the version was applied from another file; the
        description is that of the applied file then.
    """

    version: VersionText
    description: str
    state: MigrationStateName
    applied_at: datetime | None = None
    stays: tuple[str, ...] = ()
    waiting: tuple[WaitingValues, ...] = ()
    rolled_back_at: datetime | None = None
    not_restorable: tuple[str, ...] = ()
    interruption: str | None = None
    lists: tuple[ListProgress, ...] = ()
    is_other_file: bool = False


class KeptViewStatus(Frozen):
    """A view that keeps the old column names of a table.

    :param name: its name in the catalog.
    :param version: the migration that declares it.
    :param exists: whether the catalog has it.
    :param until: when `maintain` drops it, in UTC; ``None`` where its creation is unknown.
    """

    name: str
    version: VersionText
    exists: bool
    until: datetime | None = None


class TableStatus(Frozen):
    """The state of one table.

    :param table: its declared name (from the files where it is not applied yet).
    :param name: its name in the catalog.
    :param version: the last applied migration that changed it; ``None`` without one.
    :param exists: whether the catalog has it.
    :param pending: versions of pending migrations that mention it.
    :param ours: whether a migration of this project created it, also an interrupted one.
    :param note: which other table has the name, or that the history has no record of it, and what to do;
        ``None`` otherwise.
    :param old_files: files of old partition specs; ``None`` where there are none, or where they are unknown.
    :param differs: whether others changed declared facts; ``drift`` shows them.
    :param unreadable: why its metadata cannot be read, and what to do; ``None`` where it can.
    :param views: its views with old column names.
    """

    table: str
    name: str
    version: str | None
    exists: bool
    pending: tuple[VersionText, ...] = ()
    ours: bool = False
    note: str | None = None
    old_files: OldSpecFiles | None = None
    differs: bool = False
    unreadable: str | None = None
    views: tuple[KeptViewStatus, ...] = ()


class LockStatus(Frozen):
    """The holder of a project's lock.

    :param pid: the process id.
    :param since: when it was acquired, by the holder's clock.
    :param seen_at: the holder's last renewal, by its clock.
    :param action: the command: ``apply`` or ``rollback``.
    :param step: the current step; empty before the first.
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
    """The result of ``unlock``.

    :param lock: the holder; ``None`` where no process held the lock.
    :param taken: whether the lock was removed.
    """

    project: str
    environment: str
    lock: LockStatus | None
    taken: bool


class Status(Frozen):
    """The state of a project in one environment.

    :param catalog: which catalog it is, without secrets.
    :param version: the last applied migration; ``None`` without one.
    :param migrations: every migration that has a file or was applied, in order.
    :param tables: every declared table, and other tables under a name that a declared table had.
    :param lock: the holder of the lock; ``None`` while no process holds it.
    :param unread_lists: why the values of lists cannot be read; ``None`` where they can.
    :param hidden_losses: without details, how many of the newest versions have
        :attr:`MigrationStatus.not_restorable`.
    """

    project: str
    environment: str
    catalog: str
    version: str | None
    migrations: tuple[MigrationStatus, ...] = ()
    tables: tuple[TableStatus, ...] = ()
    lock: LockStatus | None = None
    unread_lists: str | None = None
    hidden_losses: int = 0

    @property
    def extended_next(self) -> int:
        """How many applied migrations `apply` extends."""
        return sum(any(one.new for one in m.lists) for m in self.migrations)

    def count(self, *states: str) -> int:
        """How many migrations are in one of the states."""
        return sum(m.state in states for m in self.migrations)


class HistoryEntry(Frozen):
    """The history's record of one version.

    :param description: of the migration.
    :param standing: ``applied``, ``held`` (rolled back, waits for a redo) or ``interrupted``; the JSON key of
        the state.
    :param at: when it was last applied, in UTC.
    :param by: the user who applied it.
    :param checksum: SHA-256 over the file's parsed content.
    """

    version: VersionText
    description: str
    standing: Annotated[str, one_of("applied", "held", "interrupted")]
    at: datetime
    by: str
    duration_ms: Milliseconds
    checksum: str


class HistoryEvent(Frozen):
    """One event.

    :param event: ``applied``; ``extended`` (applied to new values of a list); ``redone`` (applied again after
        a rollback); ``rolled_back``; ``failed`` (every change was undone); ``interrupted`` (neither applied
        nor undone); ``running``; ``repaired``; ``squashed``; ``baselined``; ``unlocked``; ``maintained``;
        ``reset``; ``reconciled`` (tables were changed back to the recorded state); ``altered`` (a user
        changed the columns of a table).
    :param version: ``None`` for an event without a single version.
    :param description: of the migration.
    :param at: when it ended, in UTC; when it began, where it has no end.
    :param by: the user, from the operating system.
    :param host: empty if unknown.
    :param duration_ms: ``None`` where it has no end, or took no time.
    :param run: the same for all events of one call of icemigrate; as in the rows of the history.
    :param message: why it failed, or a further remark.
    :param action: the command that failed, was interrupted or is running; ``None`` for all other events, and
        where an older release recorded the event.
    """

    event: EventName
    version: VersionText | None
    description: str
    at: datetime
    by: str
    host: str
    duration_ms: Milliseconds | None = None
    run: str = ""
    message: str | None = None
    action: str | None = None


class HistoryResult(Frozen):
    """Events with their users, times and durations.

    :param entries: the record of each version; by version.
    :param events: oldest first.
    :param earlier: number of older events, which are only in the rows of the history.
    """

    project: str
    environment: str
    entries: tuple[HistoryEntry, ...] = ()
    events: tuple[HistoryEvent, ...] = ()
    earlier: Count = 0
