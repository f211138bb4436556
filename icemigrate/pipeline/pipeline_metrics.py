"""Metrics of a run of ``ingest`` for Prometheus.

The number of series is bounded: each of the first tenants has its own, and all others share one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from icemigrate.errors import MissingExtra, extra_hint
from icemigrate.frozen import Frozen
from icemigrate.pipeline.batch_result import BatchResult
from icemigrate.pipeline.log_lag import LogLag

MOST_TENANTS = 100
OTHER_TENANTS, UNREADABLE = "(others)", "(unreadable)"
"""Labels that no tenant can have as its id."""
_BUCKETS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_LABELS = ("tenant", "kind")


class MetricSpec(Frozen):
    """The description of one metric.

    :param type: ``counter``, ``gauge`` or ``histogram``.
    :param name: without the suffix ``_total`` of a counter.
    """

    type: str
    name: str
    help: str
    labels: tuple[str, ...] = ()


METRICS = (
    MetricSpec("counter", "batches", "Complete batches."),
    MetricSpec("histogram", "batch_seconds", "How long batches take, in seconds."),
    MetricSpec("gauge", "last_batch_timestamp_seconds", "When the last batch was complete, since 1970."),
    MetricSpec("counter", "entries", "Entries of the log that tables got.", _LABELS),
    MetricSpec("counter", "rows", "Rows of these entries.", _LABELS),
    MetricSpec("counter", "written_bytes", "Bytes of the data files with these rows.", _LABELS),
    MetricSpec("counter", "quarantined_entries", "Entries that the quarantine got."),
    MetricSpec("counter", "future_entries", "Entries that were more than 5 minutes ahead of the clock."),
    MetricSpec("counter", "table_failures", "Batches with entries that a table did not take.", _LABELS),
    MetricSpec("gauge", "failed_tables", "Tables that have a problem now."),
    MetricSpec("gauge", "deferred_entries", "Entries that wait for tables with a problem."),
    MetricSpec("gauge", "lag_entries", "Entries that wait in sealed and deferred segments.", _LABELS),
    MetricSpec("gauge", "lag_seconds", "The age of the oldest entry that waits, in seconds.", _LABELS),
    MetricSpec("gauge", "waiting_segments", "Sealed segments of which no complete batch has the entries."),
    MetricSpec("gauge", "waiting_bytes", "Bytes of these segments."),
    MetricSpec("gauge", "unread_segments", "Segments whose entries are not in the lag yet."),
)
"""Each is exported with the prefix ``icemigrate_ingest_``."""
PREFIX = "icemigrate_ingest_"


def sample_name(metric: MetricSpec) -> str:
    """The name under which Prometheus has a metric."""
    return f"{PREFIX}{metric.name}{'_total' if metric.type == 'counter' else ''}"


class PipelineMetrics:
    """The values of :data:`METRICS`, in a registry of their own.

    :param most_tenants: how many tenants have series of their own.
    :raises MissingExtra: `prometheus-client` is not installed.
    """

    def __init__(self, most_tenants: int = MOST_TENANTS) -> None:
        try:
            import prometheus_client as prometheus
        except ImportError as error:
            raise MissingExtra("prometheus-client is not installed", extra_hint("pipeline")) from error
        types = {"counter": prometheus.Counter, "gauge": prometheus.Gauge}
        self.registry = prometheus.CollectorRegistry()
        self._most_tenants = most_tenants
        self._tenants = set[str]()
        self._failed = set[tuple[str | None, str | None]]()
        self._metrics = dict[str, Any]()
        for metric in METRICS:
            options: dict[str, Any] = {"registry": self.registry}
            if metric.type == "histogram":
                made = prometheus.Histogram(PREFIX + metric.name, metric.help, buckets=_BUCKETS, **options)
            else:
                made = types[metric.type](PREFIX + metric.name, metric.help, metric.labels, **options)
            self._metrics[metric.name] = made

    def add(self, batch: BatchResult) -> None:
        """Add a complete batch."""
        self._metrics["batches"].inc()
        self._metrics["batch_seconds"].observe(batch.seconds)
        self._metrics["last_batch_timestamp_seconds"].set_to_current_time()
        self._metrics["quarantined_entries"].inc(batch.quarantined)
        self._metrics["future_entries"].inc(batch.future)
        for table in batch.tables:
            if table.tenant is None or table.kind is None or not table.entries:
                continue
            labels = (self._label(table.tenant), table.kind)
            if table.problem is not None:
                self._failed.add((table.tenant, table.kind))
                self._metrics["table_failures"].labels(*labels).inc()
                continue
            self._failed.discard((table.tenant, table.kind))
            for name, value in (
                ("entries", table.entries),
                ("rows", table.rows),
                ("written_bytes", table.size),
            ):
                self._metrics[name].labels(*labels).inc(value)
        self._metrics["failed_tables"].set(len(self._failed))

    def set_lag(self, lag: LogLag, now_s: float) -> None:
        """Set what waits.

        :param now_s: in seconds since 1970.
        """
        entries, seconds = dict[tuple[str, str], int](), dict[tuple[str, str], float]()
        for one in lag.waiting:
            tenant = UNREADABLE if one.tenant is None else self._label(one.tenant)
            labels = (tenant, one.kind or "")
            age_s = 0.0 if one.oldest_ns is None else max(now_s - one.oldest_ns / 1e9, 0.0)
            entries[labels] = entries.get(labels, 0) + one.entries
            seconds[labels] = max(seconds.get(labels, 0.0), age_s)
        self._set_all("lag_entries", entries.items())
        self._set_all("lag_seconds", seconds.items())
        for name, value in (
            ("deferred_entries", lag.deferred),
            ("waiting_segments", lag.segments),
            ("waiting_bytes", lag.size),
            ("unread_segments", lag.unread),
        ):
            self._metrics[name].set(value)

    def _set_all(self, name: str, values: Iterable[tuple[tuple[str, str], float]]) -> None:
        """Set the series of a metric; those without a value are 0."""
        metric, found = self._metrics[name], dict(values)
        for labels in [tuple(sample.labels.values()) for one in metric.collect() for sample in one.samples]:
            metric.labels(*labels).set(found.pop(labels, 0))
        for labels, value in found.items():
            metric.labels(*labels).set(value)

    def _label(self, tenant: str) -> str:
        """The label of a tenant, which it keeps."""
        if tenant not in self._tenants:
            if len(self._tenants) >= self._most_tenants:
                return OTHER_TENANTS
            self._tenants.add(tenant)
        return tenant
