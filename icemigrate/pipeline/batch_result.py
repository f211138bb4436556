"""What a batch did, for those who report it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from icemigrate.frozen import Frozen
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.table_retries import TableOutcomes


class BatchPhase(Frozen):
    """A part of a batch.

    :param name: ``write files``, ``commit tables``, ``commit table``, ``defer entries``, ``create tables`` or
        ``record totals``.
    :param began_ns: in nanoseconds since 1970, as ``ended_ns``.
    :param table: the declared name, where the phase is of one table.
    """

    name: str
    began_ns: int
    ended_ns: int
    table: str | None = None


class BatchResult(Frozen):
    """What a batch did.

    :param number: from 0, within the checkpoint.
    :param deferred: entries that stay in the log, because their table has a problem.
    :param outcomes: which tables began to have a problem, or have none any more.
    :param phases: in order.
    :param created: names of the tables that are created for new tenants.
    """

    number: int
    tables: tuple[TableBatch, ...]
    deferred: int = 0
    outcomes: TableOutcomes = TableOutcomes()
    phases: tuple[BatchPhase, ...] = ()
    created: tuple[str, ...] = ()

    @property
    def entries(self) -> int:
        """The entries that tables have now, without the quarantined ones."""
        return sum(table.entries for table in self.tables if table.problem is None and table.tenant)

    @property
    def rows(self) -> int:
        """The rows of these entries."""
        return sum(table.rows for table in self.tables if table.problem is None and table.tenant)

    @property
    def quarantined(self) -> int:
        """The entries that the quarantine has now."""
        return sum(table.entries for table in self.tables if table.tenant is None)

    @property
    def future(self) -> int:
        """The entries whose time is in the future."""
        return sum(table.future for table in self.tables)

    @property
    def table_count(self) -> int:
        """The tenants and kinds that have new entries in their tables or files."""
        return sum(
            table.problem is None and table.tenant is not None and table.entries > 0 for table in self.tables
        )

    @property
    def began_ns(self) -> int:
        """When the batch began, in nanoseconds since 1970."""
        return self.phases[0].began_ns if self.phases else 0

    @property
    def seconds(self) -> float:
        """How long the batch took."""
        return (self.phases[-1].ended_ns - self.began_ns) / 1e9 if self.phases else 0.0


class PhaseClock:
    """Collects the phases of a batch.

    :param before_phase: called before each phase; a batch that may not go on raises there.
    """

    def __init__(self, before_phase: Callable[[], None]) -> None:
        self._before_phase = before_phase
        self._phases = list[BatchPhase]()

    @contextmanager
    def phase(self, name: str, table: str | None = None) -> Iterator[None]:
        """A block that is one phase."""
        self._before_phase()
        began_ns = time.time_ns()
        yield
        self._phases.append(BatchPhase(name, began_ns, max(time.time_ns(), began_ns), table))

    @property
    def phases(self) -> tuple[BatchPhase, ...]:
        """The phases so far."""
        return tuple(self._phases)
