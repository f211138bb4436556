"""``ingest status``: what waits in a write-ahead log, and what is drained, without Spark and the catalog."""

from __future__ import annotations

from pathlib import Path

from icemigrate.pipeline.drained_segments import drained_segments
from icemigrate.pipeline.drained_totals import TenantTotals, read_totals
from icemigrate.pipeline.stream_checkpoint import last_complete
from icemigrate.pipeline.waiting_entries import WaitingEntries, waiting_entries
from icemigrate.results.ingest_status_results import IngestStatus, TenantIngestStatus

DEFAULT_CHECKPOINT = "checkpoint"
"""The folder in the log."""


def ingest_status(log: Path, checkpoint: Path | None, now_ns: int) -> IngestStatus:
    """Count the entries of a log by tenant and kind.

    :param checkpoint: of the runs that drain it; ``None`` for the folder ``checkpoint`` in the log.
    :param now_ns: in nanoseconds since 1970.
    :raises LogError: the log cannot be read.
    :raises EngineError: the checkpoint cannot be read.
    """
    folder = checkpoint or log / DEFAULT_CHECKPOINT
    # The number first: a batch that completes meanwhile counts as waiting, never as missing.
    complete = last_complete(folder)
    drained = {(one.tenant, one.kind): one for one in read_totals(folder, complete)}
    waiting = {(one.tenant, one.kind): one for one in waiting_entries(log, folder, complete)}
    tenants = [_tenant(key, waiting.get(key), drained.get(key), now_ns) for key in {**drained, **waiting}]
    ages = [one.oldest_age_s for one in tenants if one.oldest_age_s is not None]
    return IngestStatus(
        log=str(log),
        batches=complete + 1,
        waiting=sum(one.waiting for one in tenants),
        oldest_age_s=max(ages, default=None),
        ingested=sum(one.ingested for one in tenants),
        quarantined=sum(one.quarantined for one in tenants),
        drained_segments=len(drained_segments(log, folder, complete)),
        tenants=tuple(sorted(tenants, key=_order)),
    )


def _tenant(
    key: tuple[str | None, str | None],
    waiting: WaitingEntries | None,
    drained: TenantTotals | None,
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
        problem=None if drained is None else drained.problem,
    )


def _order(one: TenantIngestStatus) -> tuple[float, str, str]:
    return (-(one.oldest_age_s or 0), one.tenant or "", one.kind or "")
