"""What reports on a run of ``ingest`` beside its result: metrics, health, and traces."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen
from icemigrate.pipeline.batch_result import BatchResult
from icemigrate.pipeline.batch_traces import batch_traces
from icemigrate.pipeline.log_lag import LagMeter
from icemigrate.pipeline.metrics_server import serve_metrics
from icemigrate.pipeline.pipeline_metrics import PipelineMetrics
from icemigrate.pipeline.run_health import RunHealth
from icemigrate.project.listen_address import ListenAddress
from icemigrate.wal.storage_path import AnyPath

_LAG_SECONDS = 15
"""How often the lag is measured."""


class ReportSettings(Frozen):
    """What reports on a run.

    :param metrics_address: of the server of metrics; ``None`` for no server.
    :param health_limit_s: how long entries may wait without a batch that completes, in seconds.
    """

    metrics_address: ListenAddress | None = None
    health_limit_s: float = 600.0


class RunReports:
    """The reports of a run; without any, its methods do nothing."""

    def __init__(self) -> None:
        self.on_start = list[Callable[[], None]]()
        self.on_batch = list[Callable[[BatchResult], None]]()

    def started(self) -> None:
        """Report that the stream starts."""
        for report in self.on_start:
            report()

    def batch_done(self, batch: BatchResult) -> None:
        """Report a complete batch."""
        for report in self.on_batch:
            report(batch)


@contextmanager
def report_run(
    settings: ReportSettings,
    log: AnyPath,
    checkpoint: AnyPath,
    notice: Callable[[str], None] = lambda text: None,
) -> Iterator[RunReports]:
    """Report on a run, until the block ends.

    :param notice: gets lines for the user.
    :raises MissingExtra: a package is not installed.
    :raises EngineError: the server of metrics cannot listen at its address.
    """
    reports = RunReports()
    with ExitStack() as stack:
        if settings.metrics_address is not None:
            metrics, health = PipelineMetrics(), RunHealth(settings.health_limit_s)
            address = stack.enter_context(serve_metrics(settings.metrics_address, metrics, health))
            notice(f"Metrics: http://{address}/metrics")
            reports.on_start.append(health.start)
            reports.on_batch += [metrics.add, lambda batch: health.progress()]
            stack.callback(health.end)
            stack.enter_context(_measured_lag(LagMeter(log, checkpoint), metrics, health))
        if (traces := stack.enter_context(batch_traces(notice))) is not None:
            reports.on_batch.append(traces.add)
        yield reports


@contextmanager
def _measured_lag(meter: LagMeter, metrics: PipelineMetrics, health: RunHealth) -> Iterator[None]:
    """A block during which a thread measures the lag."""
    is_ended = threading.Event()

    def measure() -> None:
        while True:
            # The stream itself reports that the log cannot be read.
            with suppress(IcemigrateError, OSError):
                lag = meter.measure()
                metrics.set_lag(lag, time.time())
                if not lag.segments:
                    health.progress()
            if is_ended.wait(_LAG_SECONDS):
                return

    thread = threading.Thread(target=measure, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_ended.set()
        thread.join()
