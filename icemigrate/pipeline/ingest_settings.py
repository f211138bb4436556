"""What a run of ``ingest`` drains, and how."""

from __future__ import annotations

from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.pipeline.batch_limit import BatchLimit
from icemigrate.pipeline.batch_trigger import BatchTrigger
from icemigrate.project.sink_choice import SinkChoice
from icemigrate.project.telemetry_sources import FileSource, KafkaSource
from icemigrate.project.tenant_tables import TenantTables
from icemigrate.wal.entries import EntryKind
from icemigrate.wal.storage_path import AnyPath


class IngestSettings(Frozen):
    """What a run drains, and how.

    :param log: the folder of the segments.
    :param checkpoint: the folder of the stream's state.
    :param quarantine: the declared table of entries that cannot be read.
    :param limit: of a batch.
    :param interval_s: seconds between batches; ``None`` to end when everything is drained.
    :param retention_s: seconds that a drained segment stays in the log; ``None`` for ever.
    :param sources: of telemetry that the run copies into the log.
    :param kafka: sources of telemetry that the stream reads beside the log.
    :param sinks: where the rows of each tenant go.
    :param trigger: what starts a batch of a run with an interval; ``None`` for all that waits.
    :param observed: the kinds whose attributes without a column are counted.
    """

    log: AnyPath
    checkpoint: AnyPath
    tables: TenantTables
    quarantine: TableName
    limit: BatchLimit = BatchLimit(64)
    interval_s: float | None = None
    retention_s: float | None = None
    sources: tuple[FileSource, ...] = ()
    kafka: tuple[KafkaSource, ...] = ()
    sinks: SinkChoice = SinkChoice()
    trigger: BatchTrigger | None = None
    observed: frozenset[EntryKind] = frozenset()
