"""What a run did, by table: its size depends on the number of tables, not of batches."""

from __future__ import annotations

from icemigrate.frozen import replace
from icemigrate.pipeline.batch_result import BatchResult
from icemigrate.pipeline.deferred_entries import waiting_segments
from icemigrate.pipeline.stream_checkpoint import last_complete, stream_id
from icemigrate.results.ingest_results import IngestedTable
from icemigrate.wal.log_folder import read_segment
from icemigrate.wal.segment_format import decode_segment
from icemigrate.wal.storage_path import AnyPath


class RunTotals:
    """Adds up the batches of a run.

    :ivar batches: how many there were.
    :ivar created: how many tables were created for new tenants.
    """

    def __init__(self) -> None:
        self.batches = 0
        self.created = 0
        self._tables = dict[tuple[str, str | None, str | None], IngestedTable]()

    def add(self, batch: BatchResult) -> None:
        """Add a batch."""
        self.batches += 1
        self.created += len(batch.created)
        for table in batch.tables:
            if not table.entries:
                continue
            key = (table.table, table.tenant, table.kind)
            before = self._tables.get(key, IngestedTable(*key, 0, 0))
            entries = table.entries if table.problem is None else 0
            self._tables[key] = IngestedTable(
                *key,
                before.entries + entries,
                before.rows + table.rows,
                table.problem,
            )

    def tables(self, deferred: int) -> tuple[IngestedTable, ...]:
        """The totals of the tables, by name, each with its last problem.

        :param deferred: entries that are in the log at the end; without one there is no problem.
        """
        found = (self._tables[key] for key in sorted(self._tables, key=lambda key: key[0]))
        return tuple(table if deferred else replace(table, problem=None) for table in found)


def deferred_entries(log: AnyPath, checkpoint: AnyPath) -> int:
    """How many entries of tables with a problem are in the log.

    :raises LogError: the log cannot be read.
    :raises EngineError: the checkpoint cannot be read.
    """
    found = waiting_segments(stream_id(checkpoint), last_complete(checkpoint), log)
    return sum(len(decode_segment(read_segment(path)).entries) for path in found)
