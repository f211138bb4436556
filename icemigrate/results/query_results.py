"""Results of queries on tables."""

from __future__ import annotations

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count


class QueriedTable(Frozen):
    """What a query reads of a table.

    :param table: its name in migration files.
    :param snapshot_id: the snapshot that is read; ``None`` for a table without snapshots.
    :param reader: ``duckdb`` or ``pyiceberg``.
    :param reason: why this reader is used.
    :param files: data files of the snapshot.
    :param bytes: their size.
    :param files_read: data files that the query opened; partitions and statistics skip the others.
    :param bytes_read: the size of the opened files.
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
    delete_files: Count


class QueryExplanation(Frozen):
    """How a query is run.

    :param tables: each table once for each state that is read.
    """

    tables: tuple[QueriedTable, ...]
