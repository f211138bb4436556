"""Results of ``drift``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count, Milliseconds, one_of

DriftStatus: TypeAlias = Literal["drift", "done already", "unmanaged", "expired"]
TableState: TypeAlias = Literal["there", "gone", "renamed", "replaced", "unreadable"]


class DriftFact(Frozen):
    """One fact that differs from the recorded state.

    :param fact: its name, as in a table entry: ``columns.price.type``.
    :param change: ``added``, ``changed`` or ``removed``.
    :param recorded: the recorded value, as text.
    :param actual: the current value, as text.
    :param told: ``drift``; ``done already`` (a pending migration declares it); ``unmanaged`` (no file ever
        declared it); ``expired`` (a tag whose limit is over).
    :param pending: the migration that declares it; ``None`` without one.
    :param after: the change is later than this time; ``None`` where no bound is known.
    :param before: the change is not later than this time; equal to ``after`` where the time is exact.
    :param note: a further remark; ``None`` without one.
    :param by: the user who changed it with `icemigrate table`; ``None`` where another client changed it.
    :param writers: the table's writers in that interval, which may not be the authors of the change.
    """

    fact: str
    change: Annotated[str, one_of("added", "changed", "removed")]
    recorded: str
    actual: str
    told: DriftStatus = "drift"
    pending: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    writers: tuple[str, ...] = ()
    note: str | None = None
    by: str | None = None


class TableDrift(Frozen):
    """One table that differs from its recorded state.

    :param table: its declared name.
    :param name: its recorded name in the catalog.
    :param state: ``gone``; ``renamed``; ``replaced`` (another table has its name); ``unreadable`` (a note has
        the reason); otherwise ``there``.
    :param found: its current name in the catalog, where it differs.
    :param pending: the migration that declares its state; ``None`` without one.
    :param facts: that differ from the recorded state.
    :param notes: further remarks.
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
        moved = self.state not in ("there", "unreadable") and self.pending is None
        return moved or any(f.told == "drift" for f in self.facts)


class DriftResult(Frozen):
    """Other clients' changes of a project's tables.

    :param catalog: which catalog it is, without secrets.
    :param compared: number of tables that were compared.
    :param recorded: whether the history has any table.
    :param tables: differing tables.
    :param interrupted: versions with a run that began and has no outcome, each with its command.
    :param resolutions: what a user can do about the drift, each tried by planning.
    :param undeclared: number of further tables in the namespaces of the recorded ones, which are no drift;
        ``None`` where only some tables were compared, or the catalog does not list them.
    """

    project: str
    environment: str
    catalog: str
    compared: Count
    recorded: bool
    tables: tuple[TableDrift, ...] = ()
    interrupted: tuple[str, ...] = ()
    resolutions: tuple[str, ...] = ()
    undeclared: Count | None = None

    @property
    def drifted(self) -> bool:
        """Whether there is drift."""
        return any(t.drifted for t in self.tables)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The declared names of tables that could not be compared."""
        return tuple(t.table for t in self.tables if t.state == "unreadable")


class AcceptResult(Frozen):
    """The migration that declares other clients' changes.

    :param path: of the file; ``None`` where there is nothing to declare.
    :param notes: facts that a migration cannot declare, and remarks about others.
    """

    project: str
    environment: str
    path: str | None
    notes: tuple[str, ...] = ()


class ReconcileResult(Frozen):
    """The result of ``apply --reconcile``.

    :param tables: declared names of the reconciled tables; empty where there was nothing to do.
    :param elapsed_ms: from the first statement to the last record.
    """

    project: str
    environment: str
    tables: tuple[str, ...]
    elapsed_ms: Milliseconds
    notes: tuple[str, ...] = ()
