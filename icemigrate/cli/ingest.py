"""``icemigrate ingest``."""

from __future__ import annotations

import signal
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice, pass_settings
from icemigrate.cli.option_types import OneOf
from icemigrate.cli.options import (
    checkpoint_option,
    format_option,
    global_options,
    log_argument,
    sources_option,
)
from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.pipeline.batch_result import BatchResult
    from icemigrate.results.ingest_status_results import UnfilledColumns


def _seconds(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    from icemigrate.iceberg.retention import BadDuration, parse_duration

    if value is None:
        return None
    try:
        return parse_duration(value) / 1000
    except (BadDuration, OverflowError) as error:
        raise click.BadParameter(str(error)) from error


@click.command("ingest")
@log_argument
@sources_option
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="KIND=NAME",
    help="The tables of a kind (`traces`, `logs`, `metrics`): `traces=otel.${tenant}_traces`. Repeatable "
    "(default: `tables` of the project file).",
)
@click.option(
    "--quarantine",
    metavar="NAME",
    help="The table of entries that cannot be read; it is created if there is none (default: `quarantine` of "
    "the project file, or `telemetry.quarantine`).",
)
@checkpoint_option
@click.option("--once", is_flag=True, help="Drain what there is, and end. This is the default.")
@click.option(
    "--continuous",
    "interval_s",
    metavar="INTERVAL",
    callback=_seconds,
    help="Go on until the command is stopped, with a batch each interval, such as `10s`.",
)
@click.option(
    "--retention",
    "retention_s",
    metavar="AGE",
    callback=_seconds,
    help="Remove drained segments of this age, such as `7d`, from the log (default: `retention` of the "
    "project file, or keep all).",
)
@click.option(
    "--metrics-address",
    metavar="HOST:PORT",
    help="Serve metrics for Prometheus and the health of the run there, such as `127.0.0.1:9464` (default: "
    "`metrics_address` of the project file, or no server).",
)
@click.option(
    "--log-format",
    type=OneOf(["text", "json"]),
    default="text",
    help="How batches and problems are written to standard error: as text (the default), or as one JSON "
    "document on each line.",
)
@click.option(
    "--sink",
    type=OneOf(["parquet", "iceberg", "both"]),
    help="Where the rows go: loose Parquet files, the tables of the tenants, or both (default: `sink` of the "
    "project file, or `iceberg`). `tenant_sinks` of the project file has priority.",
)
@click.option(
    "--parquet-folder",
    metavar="FOLDER",
    help="The folder of the Parquet files, or its URL, such as `s3://bucket/files` (default: "
    "`parquet_folder` of the project file).",
)
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    log: str | None,
    sources: tuple[str, ...],
    tables: tuple[str, ...],
    quarantine: str | None,
    checkpoint: str | None,
    once: bool,
    interval_s: float | None,
    retention_s: float | None,
    metrics_address: str | None,
    log_format: str,
    sink: str | None,
    parquet_folder: str | None,
) -> ExitCode:
    """Drain a write-ahead log of OpenTelemetry data into the tables of its tenants, with Spark.

    LOG is the folder of the segments that `icemigrate.wal.Writer` writes, or its URL, such as
    `s3://bucket/log`; without it, the project file names the log below `pipeline`.  The `storage` of the
    environment signs in to a URL.  `--from` adds files of the OpenTelemetry Collector and topics of Kafka.
    Each batch is one snapshot of each table, and each entry is in one snapshot, also if the command is
    killed.  Entries whose table has a problem stay in the log, and the next run tries them again.

    Ctrl-C and SIGTERM end the command after the current batch, or at once while Spark starts.  Exits with 1
    if entries of tables with a problem stay in the log.
    """
    from icemigrate.commands.ingest import IngestRequest, ingest_log

    if once and interval_s is not None:
        raise click.UsageError("`--once` and `--continuous` exclude each other")
    settings.log_format = log_format
    request = IngestRequest(
        log,
        tables,
        quarantine,
        checkpoint,
        interval_s,
        retention_s,
        metrics_address,
        sources,
        sink,
        parquet_folder,
    )
    shows_problems = interval_s is not None or settings.format != "text"
    with _StopAfterBatch() as stopping:
        result = ingest_log(
            settings.open_project(),
            settings.environment,
            request,
            before_start=SparkStartNotice().before_start,
            notice=settings.show_step,
            on_start=stopping.begin,
            on_batch=partial(_show_batch, settings, shows_problems),
            on_unfilled=partial(_show_unfilled, settings),
            is_stopping=stopping.event,
        )
    settings.answer(result)
    return ExitCode.ERROR if result.deferred else ExitCode.OK


def _show_batch(settings: InvocationOptions, shows_problems: bool, batch: BatchResult) -> None:
    """Report a batch.

    :param shows_problems: whether its text has the problems of tables, which the result shows again.
    """
    from icemigrate.render.ingest_text import batch_text
    from icemigrate.render.log_lines import batch_events

    if settings.log_format == "text":
        settings.show_progress(batch_text(batch, shows_problems=shows_problems))
        return
    for event in batch_events(batch):
        settings.log(event)


def _show_unfilled(settings: InvocationOptions, columns: UnfilledColumns) -> None:
    from icemigrate.render.ingest_text import unfilled_text
    from icemigrate.render.log_lines import unfilled_event

    if settings.log_format == "text":
        settings.show_progress(f"{unfilled_text(columns, settings.style(sys.stderr))}\n")
    else:
        settings.log(unfilled_event(columns))


class _StopAfterBatch:
    """A block in which Ctrl-C and ``SIGTERM`` end the command after its batch, once :meth:`begin` is called.

    Until then they end it at once, as those of any command.

    :ivar event: set by the first signal; a second one ends the command.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self._before = dict[int, Any]()

    def begin(self) -> None:
        """Handle the signals from now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._stop)

    def __enter__(self) -> _StopAfterBatch:
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, _frame: Any) -> None:
        if self.event.is_set():
            sys.exit(128 + number)
        self.event.set()
