"""What keeping tables tidy comes to: acts, what is left alone, and both together as a result."""

from __future__ import annotations

from datetime import datetime

from icemigrate.frozen import Frozen


class Upkeep(Frozen):
    """One act of ``maintain`` on one table.

    :param part: ``trash``, ``snapshots``, ``rows`` or ``orphans``.
    :param table: its name in the catalog.
    :param text: what is to be done and why, in plain words.
    :param statement: what is run.
    :param consequences: what cannot be done any more afterwards.
    :param outcome: what came of it; ``None`` where it was not done.
    """

    part: str
    table: str
    text: str
    statement: str
    consequences: tuple[str, ...] = ()
    outcome: str | None = None


class Kept(Frozen):
    """What ``maintain`` leaves alone.

    :param is_refused: it is not safe; ``False`` where it is only too early, or nothing of this project.
    """

    part: str
    table: str
    reason: str
    is_refused: bool = False


class MaintainResult(Frozen):
    """What ``maintain`` would do, or did.

    :param parts: what it was asked for.
    :param at: the moment that ages are counted from, in UTC.
    :param done: whether it was carried out.
    :param elapsed_ms: from the first act to the last record; 0 where nothing was done.
    :param interrupted: versions with a run that began and has no outcome, each with its command.
    """

    project: str
    environment: str
    parts: tuple[str, ...]
    at: datetime
    acts: tuple[Upkeep, ...] = ()
    kept: tuple[Kept, ...] = ()
    done: bool = False
    elapsed_ms: int = 0
    notes: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()

    @property
    def refused(self) -> tuple[Kept, ...]:
        """What it must not do."""
        return tuple(k for k in self.kept if k.is_refused)
