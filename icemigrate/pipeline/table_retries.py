"""When the tables that have a problem are tried again, within a run.

A table with a problem is paused: its entries go to deferred segments and are not written.  The pause doubles
with each attempt that fails.  Pauses end at multiples of their length, so that tables that wait for long are
tried together, and the entries that wait are copied seldom.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.pipeline.batch_commit import TableBatch

FIRST_PAUSE_S = 30
LONGEST_PAUSE_S = 960
"""In seconds: 16 minutes, the first pause doubled five times."""
TableKey: TypeAlias = "tuple[str | None, str | None]"
"""The tenant and the kind of a table."""


class FailedTable(Frozen):
    """A table that could not take its entries.

    :param attempts: how many failed in a row.
    :param due_s: when it is tried again, on the monotonic clock.
    """

    problem: str
    attempts: int
    due_s: float


class TableOutcomes(Frozen):
    """What is new in a batch.

    :param failed: tables with a problem that they did not have in the batch before.
    :param recovered: tables that had a problem and took their entries.
    :param ahead: tables whose tenants sent entries from the future for the first time in this run.
    """

    failed: tuple[TableBatch, ...] = ()
    recovered: tuple[TableBatch, ...] = ()
    ahead: tuple[TableBatch, ...] = ()


def pause_seconds(attempts: int) -> int:
    """How long a table is paused.

    :param attempts: how many failed in a row, at least one.
    """
    return int(min(FIRST_PAUSE_S * 2 ** min(attempts - 1, 16), LONGEST_PAUSE_S))


class TableRetries:
    """The tables that have a problem, the batches with their deferred entries, and what is reported.

    The thread of the batches records, and another one takes entries back into the log.
    """

    def __init__(self) -> None:
        self._failed = dict[TableKey, FailedTable]()
        self._deferred = dict[int, frozenset[TableKey]]()
        self._ahead = set[TableKey]()
        self._lock = Lock()

    def paused(self, now_s: float) -> Mapping[TableKey, str]:
        """The problems of the tables that are not tried now."""
        with self._lock:
            return {key: failed.problem for key, failed in self._failed.items() if failed.due_s > now_s}

    def record(
        self, number: int, tables: Iterable[TableBatch], paused: Iterable[TableKey], now_s: float
    ) -> TableOutcomes:
        """Record what became of the tables of a batch.

        :param number: of the batch.
        :param paused: tables that were not tried.
        """
        failed, recovered, ahead = list[TableBatch](), list[TableBatch](), list[TableBatch]()
        deferred, skipped = set[TableKey](), frozenset(paused)
        with self._lock:
            for table in tables:
                key = (table.tenant, table.kind)
                if not table.entries or table.tenant is None:
                    continue
                if table.future and key not in self._ahead:
                    self._ahead.add(key)
                    ahead.append(table)
                if table.problem is None:
                    if self._failed.pop(key, None) is not None:
                        recovered.append(table)
                    continue
                deferred.add(key)
                if key in skipped:
                    continue
                before = self._failed.get(key)
                if before is None or before.problem != table.problem:
                    failed.append(table)
                attempts = 1 if before is None else before.attempts + 1
                self._failed[key] = FailedTable(table.problem, attempts, _due(now_s, pause_seconds(attempts)))
            if deferred:
                self._deferred[number] = frozenset(deferred)
        return TableOutcomes(tuple(failed), tuple(recovered), tuple(ahead))

    def retry(self, tables: Iterable[TableBatch]) -> None:
        """End the pauses of tables that are created now."""
        with self._lock:
            for table in tables:
                self._failed.pop((table.tenant, table.kind), None)

    def due_batches(self, now_s: float) -> frozenset[int]:
        """The batches with deferred entries of a table that is tried again now."""
        with self._lock:
            return frozenset(
                number
                for number, keys in self._deferred.items()
                if any(key not in self._failed or self._failed[key].due_s <= now_s for key in keys)
            )

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget batches whose deferred entries are in the log again."""
        with self._lock:
            for number in numbers:
                self._deferred.pop(number, None)


def _due(now_s: float, pause_s: int) -> float:
    """The first multiple of a pause that is at least half of it away."""
    return (now_s + pause_s / 2) // pause_s * pause_s + pause_s
