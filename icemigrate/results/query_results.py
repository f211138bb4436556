"""Results of queries on tables."""

from __future__ import annotations

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count


class FileGroup(Frozen):
    """Some of the data files of a snapshot.

    :param files: number of data files.
    :param bytes: their size.
    """

    files: Count = 0
    bytes: Count = 0


class QueriedTable(Frozen):
    """What a query reads of a table.

    :param table: its name in migration files.
    :param snapshot_id: the snapshot that is read; ``None`` for a table without snapshots.
    :param reader: ``duckdb`` or ``pyiceberg``.
    :param reason: why this reader is used.
    :param files: data files of the snapshot.
    :param bytes: their size.
    :param files_read: data files that the query opened.
    :param bytes_read: the size of the opened files.
    :param partition_skips: data files that their partition values exclude.
    :param statistics_skips: data files that only the statistics of their columns exclude.
    :param delete_files: delete files of the snapshot.
    """

    table: str
    snapshot_id: int | None
    reader: str
    reason: str
    files: Count
    bytes: Count
    files_read: Count
    bytes_read: Count
    partition_skips: FileGroup
    statistics_skips: FileGroup
    delete_files: Count

    @property
    def other_skips(self) -> FileGroup:
        """Data files that are skipped for another reason, such as a limit or a count from metadata."""
        known = (self.partition_skips, self.statistics_skips)
        return FileGroup(
            self.files - self.files_read - sum(group.files for group in known),
            self.bytes - self.bytes_read - sum(group.bytes for group in known),
        )


class QueryExplanation(Frozen):
    """How a query is run.

    :param tables: each table once for each state that is read.
    """

    tables: tuple[QueriedTable, ...]
