"""What ``drift`` tells: frozen values that the command prints."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from icemigrate.frozen import Frozen

Told: TypeAlias = Literal["drift", "done already", "unmanaged", "expired"]
TableState: TypeAlias = Literal["there", "gone", "renamed", "replaced"]


class DriftFact(Frozen):
    """One thing that is not as the history recorded it.

    :param fact: in names, as in a table entry: ``columns.price.type``.
    :param change: ``added``, ``changed`` or ``removed``.
    :param told: ``drift``; ``done already`` (a pending migration wants just this); ``unmanaged`` (no file
        ever declared it); ``expired`` (a tag whose limit is over).
    :param pending: the migration that wants it; ``None`` where none does.
    :param after: it was done after this moment; ``None`` where nothing is known.
    :param before: it was done at this moment or before it; the same as ``after`` where it is exact.
    :param note: what else is to be said of it; ``None`` where nothing is.
    :param writers: who wrote to the table in that time, which need not be who did it.
    """

    fact: str
    change: str
    recorded: str
    actual: str
    told: Told = "drift"
    pending: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    writers: tuple[str, ...] = ()
    note: str | None = None


class TableDrift(Frozen):
    """One table that is not as the history recorded it.

    :param table: its declared name.
    :param name: its name in the catalog, as it should be.
    :param state: ``gone``; ``renamed``; ``replaced`` (another table has its name); else ``there``.
    :param found: the name that it has in the catalog now, where it is another one.
    :param pending: the migration that wants its state; ``None`` where none does.
    :param notes: what else is to be said.
    """

    table: str
    name: str
    state: TableState = "there"
    found: str | None = None
    pending: str | None = None
    facts: tuple[DriftFact, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def drifted(self) -> bool:
        """Whether anything of it is drift."""
        moved = self.state != "there" and self.pending is None
        return moved or any(f.told == "drift" for f in self.facts)


class DriftResult(Frozen):
    """What others did to the tables of a project.

    :param compared: number of tables that were compared.
    :param recorded: whether the history holds anything to compare with.
    :param tables: those of which there is something to tell.
    :param interrupted: versions with a run that began and has no outcome, each with its command.
    """

    project: str
    environment: str
    catalog: str
    compared: int
    recorded: bool
    tables: tuple[TableDrift, ...] = ()
    interrupted: tuple[str, ...] = ()

    @property
    def drifted(self) -> bool:
        """Whether there is drift."""
        return any(t.drifted for t in self.tables)


class AcceptResult(Frozen):
    """The migration that declares what others did.

    :param path: of the file; ``None`` where there is nothing to declare.
    :param notes: what a migration cannot declare, and what to know of the others.
    """

    project: str
    environment: str
    path: str | None
    notes: tuple[str, ...] = ()


class ReconcileResult(Frozen):
    """What ``apply --reconcile`` did.

    :param tables: declared names of those that were led back; none where there was nothing to do.
    :param elapsed_ms: from the first statement to the last record.
    """

    project: str
    environment: str
    tables: tuple[str, ...]
    elapsed_ms: int
    notes: tuple[str, ...] = ()
