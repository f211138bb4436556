"""Results of ``ingest``."""

from __future__ import annotations

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count


class IngestedTable(Frozen):
    """What a run did with one table.

    :param table: its name in migration files; empty if no table is given for the kind, or the rows are in
        Parquet files alone.
    :param tenant: the tenant; ``None`` for the quarantine.
    :param kind: ``traces``, ``logs`` or ``metrics``; ``None`` for the quarantine.
    :param entries: entries of the log that the table has now.
    :param rows: rows of these entries.
    :param problem: why entries of the last batch stay in the log; ``None`` where none do.
    """

    table: str
    tenant: str | None
    kind: str | None
    entries: Count
    rows: Count
    problem: str | None = None


class IngestResult(Frozen):
    """What a run did.

    :param batches: the number of its batches.
    :param deferred: entries that stay in the log, because their table has a problem.
    :param removed_segments: drained segments of the log that the run removed.
    :param created_tables: tables that the run created for new tenants.
    :param tables: the tables, by name.
    :param stopped: whether Ctrl-C or ``SIGTERM`` ended the run.
    :param waiting: of a run that was stopped: further entries in sealed segments of the log.
    :param uncounted_segments: of a run that was stopped: sealed segments whose entries are not counted,
        because that takes long.
    """

    project: str
    environment: str
    batches: Count
    deferred: Count
    removed_segments: Count
    created_tables: Count
    tables: tuple[IngestedTable, ...]
    stopped: bool = False
    waiting: Count = 0
    uncounted_segments: Count = 0
