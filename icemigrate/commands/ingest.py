"""``ingest``: drains a write-ahead log into the tables of its tenants."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path

from icemigrate.commands.ingest_reports import ReportSettings, report_run
from icemigrate.commands.tenant_table_creation import TenantTableCreation
from icemigrate.commands.unfilled_columns import declared_unfilled_columns
from icemigrate.errors import EngineError, Stopped, Terminated, UsageError, os_error_reason
from icemigrate.execution.spark_start import engine_of
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import BadName, TableName
from icemigrate.pipeline.batch_limit import BatchLimit
from icemigrate.pipeline.batch_result import BatchResult
from icemigrate.pipeline.batch_trigger import BatchTrigger
from icemigrate.pipeline.ingest_settings import IngestSettings
from icemigrate.pipeline.ingest_stream import ingest
from icemigrate.pipeline.kafka_records import kafka_packages
from icemigrate.pipeline.log_lag import LagMeter, LogLag
from icemigrate.pipeline.quarantine import missing_columns, quarantine_schema
from icemigrate.pipeline.run_totals import RunTotals, deferred_entries
from icemigrate.pipeline.stream_checkpoint import require_log_kind, require_sources
from icemigrate.project import Project, choose_environment, storage_properties
from icemigrate.project.listen_address import parse_listen_address
from icemigrate.project.project_values import PipelineSettings
from icemigrate.project.sink_choice import SinkChoice, SinkKind, parse_parquet_folder
from icemigrate.project.telemetry_sources import FileSource, KafkaSource, TelemetrySource, parse_sources
from icemigrate.project.tenant_tables import TenantTables, log_of, may_be_equal, tenant_tables
from icemigrate.results.ingest_results import IngestResult
from icemigrate.results.ingest_status_results import UnfilledColumns
from icemigrate.table_data.load_target import load_target
from icemigrate.table_data.new_table import create_table
from icemigrate.table_data.table_session import TableSession, open_tables
from icemigrate.wal.entries import EntryKind
from icemigrate.wal.log_folder import LogError, create_folder, require_log
from icemigrate.wal.log_lock import lock_log
from icemigrate.wal.storage_path import AnyPath, StoragePath, open_path

_LARGEST_MERGED_BATCH = 2**30
"""In bytes of segments, where ``min_batch_bytes`` is not more."""


class IngestRequest(Frozen):
    """The arguments of a run; for those that are empty or ``None``, the project file has the values.

    :param tables: kinds and patterns, such as ``traces=otel.${tenant}_traces``.
    :param interval_s: seconds between batches; ``None`` to end when everything is drained.
    :param retention_s: seconds that a drained segment stays in the log; ``None`` for ever.
    :param metrics_address: of the server of metrics, such as ``127.0.0.1:9464``.
    :param sources: addresses, such as ``file:otel/traces.json?tenant=acme``.
    :param sink: a :class:`~icemigrate.project.sink_choice.SinkKind`, for tenants without one of their own.
    :param parquet_folder: of the sinks of Parquet files.
    """

    log: str | PathLike[str] | None = None
    tables: tuple[str, ...] = ()
    quarantine: str | None = None
    checkpoint: str | PathLike[str] | None = None
    interval_s: float | None = None
    retention_s: float | None = None
    metrics_address: str | None = None
    sources: tuple[str, ...] = ()
    sink: str | None = None
    parquet_folder: str | None = None


def ingest_log(
    project: Project,
    environment: str | None,
    request: IngestRequest,
    *,
    before_start: Callable[[], None] = lambda: None,
    on_start: Callable[[], None] = lambda: None,
    on_batch: Callable[[BatchResult], None] = lambda batch: None,
    on_unfilled: Callable[[UnfilledColumns], None] = lambda columns: None,
    notice: Callable[[str], None] = lambda text: None,
    is_stopping: threading.Event | None = None,
) -> IngestResult:
    """Drain a log.

    :param before_start: called right before Spark starts.
    :param on_start: called when Spark has started.
    :param on_batch: called after each batch.
    :param on_unfilled: called once for each kind whose tables have columns that nothing fills.
    :param notice: gets lines for the user.
    :param is_stopping: ends the run after the current batch when it is set.
    :raises UsageError: an argument is wrong.
    :raises LogError: the log cannot be read, or another run drains it.
    :raises CatalogError: the catalog cannot be reached.
    :raises EngineError: Spark or the storage failed; the next run repeats the batch.
    :raises Stopped: Ctrl-C or ``SIGTERM`` ended the command while Spark started.
    """
    settings = ingest_settings(project, request, environment)
    reporting = report_settings(project, request)
    totals = RunTotals()

    def remember(batch: BatchResult) -> None:
        totals.add(batch)
        reports.batch_done(batch)
        on_batch(batch)

    require_log(settings.log)
    if settings.sources or settings.kafka:
        _create_log(settings.log)
    with (
        lock_log(settings.log) as lock,
        report_run(reporting, settings.log, settings.checkpoint, notice) as reports,
        open_tables(project, environment) as session,
    ):
        require_log_kind(settings.checkpoint, settings.log)
        require_sources(settings.checkpoint, 1 + len(settings.kafka))
        for columns in declared_unfilled_columns(project, settings.tables):
            on_unfilled(columns)
        _create_quarantine(session, settings.quarantine)
        packages = kafka_packages() if settings.kafka else ()
        try:
            engine = engine_of(session.environment, None, before_start, packages)
        except (Stopped, KeyboardInterrupt) as stop:
            raise _stopped_early(stop) from None
        on_start()
        reports.started()
        create_tables = TenantTableCreation(project, session, engine.session)
        removed = ingest(session, engine.session, settings, remember, is_stopping, create_tables, lock)
        deferred = deferred_entries(settings.log, settings.checkpoint)
        is_stopped = is_stopping is not None and is_stopping.is_set()
        lag = _waiting(settings) if is_stopped else LogLag()
        return IngestResult(
            project=project.name,
            environment=session.environment.environment.name,
            batches=totals.batches,
            deferred=deferred,
            removed_segments=removed,
            created_tables=totals.created,
            tables=totals.tables(deferred),
            stopped=is_stopped,
            waiting=sum(one.entries for one in lag.waiting) - lag.deferred,
            uncounted_segments=lag.unread,
        )


def _waiting(settings: IngestSettings) -> LogLag:
    """What a stopped run leaves in the log; nothing if that cannot be read, because the batches are done."""
    with suppress(LogError, EngineError):
        return LagMeter(settings.log, settings.checkpoint).measure()
    return LogLag()


def ingest_settings(
    project: Project, request: IngestRequest, environment: str | None = None
) -> IngestSettings:
    """What a run drains: the arguments, and the project file where they give nothing.

    :raises UsageError: an argument is wrong, or neither gives the log or a table.
    """
    given = project.pipeline
    written = tuple(f"{kind}={pattern}" for kind, pattern in given.tables.items())
    tables = tenant_tables(request.tables or written)
    quarantine = _quarantine(request.quarantine or given.quarantine, tables)
    retention_s = None if given.retention is None else given.retention.total_seconds()
    log, checkpoint = log_of(given, request.log, request.checkpoint, lambda: storage_of(project, environment))
    sources = telemetry_sources(project, request.sources)
    kafka = tuple(one for one in sources if isinstance(one, KafkaSource))
    if kafka and isinstance(log, StoragePath):
        raise UsageError(
            f"the log {log} is no local folder, which topics of Kafka need", "give a folder of this machine"
        )
    return IngestSettings(
        log,
        checkpoint,
        tables,
        quarantine,
        limit=_batch_limit(given),
        interval_s=request.interval_s,
        retention_s=retention_s if request.retention_s is None else request.retention_s,
        sources=tuple(one for one in sources if isinstance(one, FileSource)),
        kafka=kafka,
        sinks=_sinks(given.sinks, request, lambda: storage_of(project, environment)),
        trigger=_batch_trigger(given),
        observed=frozenset(map(EntryKind, given.column_kinds)),
    )


def telemetry_sources(project: Project, written: tuple[str, ...]) -> tuple[TelemetrySource, ...]:
    """The sources of some addresses, or of the project file where there are none.

    :raises UsageError: an address is wrong.
    """
    return parse_sources(written, Path.cwd()) or parse_sources(project.pipeline.sources, project.root)


def report_settings(project: Project, request: IngestRequest) -> ReportSettings:
    """What reports on a run: the arguments, and the project file where they give nothing.

    :raises UsageError: the address of the server of metrics is wrong.
    """
    written = request.metrics_address or project.pipeline.metrics_address
    return ReportSettings(
        None if written is None else parse_listen_address(written),
        project.pipeline.health_limit.total_seconds(),
    )


def _stopped_early(stop: BaseException) -> Stopped:
    """The error of a signal while Spark starts."""
    hint = "no batch began, and all entries stay in the log; run the command again to drain it"
    if isinstance(stop, Terminated):
        return Terminated("stopped by SIGTERM while Spark started", hint)
    return Stopped("stopped by Ctrl-C while Spark started", hint)


def _create_log(folder: AnyPath) -> None:
    try:
        create_folder(folder)
    except OSError as error:
        raise LogError(
            f"the log {folder} cannot be created: {os_error_reason(error)}", "give another folder"
        ) from error


def storage_of(project: Project, environment: str | None) -> dict[str, str]:
    """How an environment signs in to its storage, by PyIceberg's keys.

    :raises: as :func:`~icemigrate.project.choose_environment`.
    """
    return storage_properties(choose_environment(project, environment, dict(os.environ)))


def _batch_limit(given: PipelineSettings) -> BatchLimit:
    """What the project file gives; a batch that waits for a size is not cut by a number of segments."""
    size, least = given.batch_bytes, given.min_batch_bytes
    if size is None and least is not None:
        size = max(least, _LARGEST_MERGED_BATCH)
    return BatchLimit(given.segments_per_batch, size)


def _batch_trigger(given: PipelineSettings) -> BatchTrigger | None:
    size = given.min_batch_bytes
    return None if size is None else BatchTrigger(size, given.max_batch_delay.total_seconds())


def _sinks(given: SinkChoice, request: IngestRequest, storage: Callable[[], Mapping[str, str]]) -> SinkChoice:
    kind = given.default if request.sink is None else SinkKind(request.sink)
    written = request.parquet_folder
    folder = given.folder if written is None else parse_parquet_folder(written, Path.cwd())
    if isinstance(folder, StoragePath):
        folder = open_path(str(folder), storage())
    return SinkChoice(kind, given.tenants, folder).require_folder()


def _quarantine(written: str, tables: TenantTables) -> TableName:
    try:
        name = TableName.parse(written)
    except BadName as error:
        raise UsageError(f"`--quarantine`: {error}") from error
    if any(may_be_equal(pattern, name) for pattern in tables.patterns.values()):
        raise UsageError(
            f"the quarantine `{name}` can be the table of a tenant", "give another name with `--quarantine`"
        )
    return name


def _create_quarantine(session: TableSession, name: TableName) -> None:
    found = session.find(name)
    if found is None:
        create_table(session, str(name), quarantine_schema())
    elif missing := missing_columns(load_target(found).columns):
        raise UsageError(
            f"table `{name}` cannot be the quarantine: it lacks {', '.join(missing)}",
            "give another name with `--quarantine`; the table is created",
        )
