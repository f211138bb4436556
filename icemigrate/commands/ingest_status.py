"""``ingest status``: what waits in a write-ahead log, and what is drained, without Spark and the catalog."""

from __future__ import annotations

from icemigrate.pipeline.drained_segments import drained_segments
from icemigrate.pipeline.drained_totals import DrainedTotals, TenantTotals, read_drained_and_waiting
from icemigrate.pipeline.kafka_lag import PartitionLag, kafka_lag
from icemigrate.pipeline.stream_checkpoint import require_log_kind, stream_id
from icemigrate.pipeline.unread_files import unread_parts
from icemigrate.pipeline.waiting_entries import WaitingEntries
from icemigrate.project.telemetry_sources import FileSource, KafkaSource, TelemetrySource
from icemigrate.project.tenant_tables import DEFAULT_CHECKPOINT
from icemigrate.results.ingest_status_results import (
    IngestStatus,
    KafkaPartition,
    TenantIngestStatus,
    UnfilledColumns,
    UnreadCollectorFile,
)
from icemigrate.wal.log_folder import require_log
from icemigrate.wal.storage_path import AnyPath


def ingest_status(
    log: AnyPath,
    checkpoint: AnyPath | None,
    now_ns: int,
    unfilled: tuple[UnfilledColumns, ...] = (),
    sources: tuple[TelemetrySource, ...] = (),
) -> IngestStatus:
    """Count the entries of a log by tenant and kind.

    :param checkpoint: of the runs that drain it; ``None`` for the folder ``checkpoint`` in the log.
    :param now_ns: in nanoseconds since 1970.
    :param unfilled: columns of the declared tables that nothing fills.
    :param sources: what the runs read beside the log.
    :raises LogError: the log or a source cannot be read, or the folder is no log.
    :raises UsageError: the checkpoint is of another kind of log.
    :raises EngineError: the checkpoint cannot be read.
    """
    folder = checkpoint or log / DEFAULT_CHECKPOINT
    require_log_kind(folder, log)
    if stream_id(folder) is None and not sources:
        require_log(log)
    complete, totals, waits = read_drained_and_waiting(log, folder)
    drained = {(one.tenant, one.kind): one for one in totals.tenants}
    waiting = {(one.tenant, one.kind): one for one in waits}
    keys = {**drained, **waiting}
    tenants = [_tenant(key, waiting.get(key), drained.get(key), totals, now_ns) for key in keys]
    ages = [one.oldest_age_s for one in tenants if one.oldest_age_s is not None]
    files = [one for one in sources if isinstance(one, FileSource)]
    topics = [one for one in sources if isinstance(one, KafkaSource)]
    kafka = kafka_lag(topics, folder, complete, now_ns // 1_000_000)
    return IngestStatus(
        log=str(log),
        batches=complete + 1,
        waiting=sum(one.waiting for one in tenants),
        oldest_age_s=max(ages, default=None),
        ingested=sum(one.ingested for one in tenants),
        quarantined=sum(one.quarantined for one in tenants),
        entries_per_s=sum(one.entries_per_s for one in tenants),
        rows_per_s=totals.rate(totals.recent_rows + totals.before_rows, now_ns / 1e9),
        drained_segments=len(drained_segments(log, folder, complete)),
        tenants=tuple(sorted(tenants, key=_order)),
        unfilled_columns=unfilled,
        kafka=tuple(_partition(one, now_ns) for one in kafka.partitions),
        kafka_problem=kafka.problem,
        unread_files=tuple(
            UnreadCollectorFile(one.path, one.tenant, one.size, max(now_ns - one.written_ns, 0) / 1e9)
            for one in unread_parts(files, log)
        ),
    )


def _tenant(
    key: tuple[str | None, str | None],
    waiting: WaitingEntries | None,
    drained: TenantTotals | None,
    totals: DrainedTotals,
    now_ns: int,
) -> TenantIngestStatus:
    oldest = None if waiting is None else waiting.oldest_ns
    return TenantIngestStatus(
        tenant=key[0],
        kind=key[1],
        waiting=0 if waiting is None else waiting.entries,
        # The clock of the process that received an entry can be ahead of this one.
        oldest_age_s=None if oldest is None else max(now_ns - oldest, 0) / 1e9,
        ingested=0 if drained is None else drained.entries,
        rows=0 if drained is None else drained.rows,
        quarantined=0 if drained is None else drained.quarantined,
        entries_per_s=0.0 if drained is None else totals.rate(drained.recent + drained.before, now_ns / 1e9),
        problem=None if drained is None else drained.problem,
        failures=0 if drained is None else drained.failures,
        problem_age_s=_age_s(drained, now_ns),
    )


def _partition(one: PartitionLag, now_ns: int) -> KafkaPartition:
    age_s = None if one.oldest_ms is None else max(now_ns / 1e9 - one.oldest_ms / 1e3, 0.0)
    return KafkaPartition(one.topic, one.partition, one.tenant, one.next_offset, one.waiting, age_s)


def _age_s(drained: TenantTotals | None, now_ns: int) -> float | None:
    """How long a table has had a problem, in seconds."""
    if drained is None or drained.problem_since_s is None:
        return None
    return max(now_ns / 1e9 - drained.problem_since_s, 0.0)


def _order(one: TenantIngestStatus) -> tuple[float, str, str]:
    return (-(one.oldest_age_s or 0), one.tenant or "", one.kind or "")
