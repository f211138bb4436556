"""Result of ``maintain``: its actions, and the tables that it skips."""

from __future__ import annotations

from datetime import datetime

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import MaintenancePart, Milliseconds


class ActionSummary(Frozen):
    """One action of ``maintain`` on one table.

    :param part: ``trash``, ``snapshots``, ``rows``, ``schemas``, ``views`` or ``orphans``.
    :param table: its name in the catalog.
    :param text: the action and its reason.
    :param statement: the statement that runs.
    :param consequences: actions that become impossible.
    :param outcome: the result; ``None`` where it did not run.
    """

    part: MaintenancePart
    table: str
    text: str
    statement: str
    consequences: tuple[str, ...] = ()
    outcome: str | None = None


class SkippedTable(Frozen):
    """A table that ``maintain`` skips.

    :param part: as in :class:`ActionSummary`.
    :param table: its name in the catalog.
    :param reason: why it stays.
    :param is_refused: whether the action is unsafe; ``False`` where it is too early, or the table is not the
        project's.
    :param is_unreadable: whether its metadata cannot be read.
    """

    part: MaintenancePart
    table: str
    reason: str
    is_refused: bool = False
    is_unreadable: bool = False


class MaintainResult(Frozen):
    """The planned or completed actions of ``maintain``.

    :param parts: the requested parts.
    :param at: the time for all ages, in UTC.
    :param acts: that were done, or would be done with ``--dry-run``.
    :param kept: what stays, and why.
    :param done: whether the actions ran.
    :param elapsed_ms: from the first action to the last record; 0 where none ran.
    :param interrupted: versions with a run that began and has no outcome, each with its command.
    """

    project: str
    environment: str
    parts: tuple[MaintenancePart, ...]
    at: datetime
    acts: tuple[ActionSummary, ...] = ()
    kept: tuple[SkippedTable, ...] = ()
    done: bool = False
    elapsed_ms: Milliseconds = 0
    notes: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()

    @property
    def refused(self) -> tuple[SkippedTable, ...]:
        """Actions that are unsafe."""
        return tuple(k for k in self.kept if k.is_refused)

    @property
    def unreadable(self) -> tuple[SkippedTable, ...]:
        """Tables whose metadata cannot be read."""
        return tuple(k for k in self.kept if k.is_unreadable)
