"""Drains a log into tables by a stream of Spark, whose checkpoint says which segments each batch has.

Spark writes the segments of a batch to the checkpoint before it runs the batch, and its completion
afterwards.  A batch that did not complete runs again with the same number, and tables that have its entries
are left out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from icemigrate.errors import EngineError
from icemigrate.frozen import replace
from icemigrate.pipeline.attribute_records import record_attributes
from icemigrate.pipeline.batch_commit import TableBatch, require_running
from icemigrate.pipeline.batch_result import BatchResult, PhaseClock
from icemigrate.pipeline.batch_trigger import TriggeredStreams, WaitingLog
from icemigrate.pipeline.checkpoint_copy import StreamCheckpoint, stream_checkpoint
from icemigrate.pipeline.collected_segments import collect
from icemigrate.pipeline.created_tables import CreatedTables, CreateTables, create_none, without_paused
from icemigrate.pipeline.deferred_entries import defer_entries, drop_deferred, take_back
from icemigrate.pipeline.drained_segments import remove_drained
from icemigrate.pipeline.drained_totals import record_totals
from icemigrate.pipeline.entry_files import BatchContext, file_batches
from icemigrate.pipeline.iceberg_sink import IcebergSink
from icemigrate.pipeline.ingest_settings import IngestSettings
from icemigrate.pipeline.parquet_sink import ParquetSink
from icemigrate.pipeline.sink_port import Sink, publish_all
from icemigrate.pipeline.stream_checkpoint import last_complete, stream_id
from icemigrate.pipeline.stream_source import FolderSource, stream_source
from icemigrate.pipeline.table_retries import TableRetries
from icemigrate.pipeline.task_results import FILE_COLUMNS, read_result
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.session import use_own_python
from icemigrate.table_data.table_session import TableSession
from icemigrate.table_data.writable_tables import reserved_of
from icemigrate.wal.log_folder import LogError, seal_abandoned
from icemigrate.wal.log_lock import LogLock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCHES_IN_CHECKPOINT = 10
"""Of which Spark keeps offsets: a checkpoint on a remote storage is copied at the start of a run."""
_MAINTENANCE_SECONDS = 60
"""How often a continuous run seals what killed writers left, and removes old segments."""
_CLOCK_SECONDS = 300
"""How far the clock of a writer can be ahead; later entries are reported as from the future."""
_POLL_SECONDS = 1
"""How often a run looks for a request to stop."""
_RECORDED_SECONDS = 10
"""How long a run waits at its end for Spark to record its last batch."""
_SEGMENTS_PER_POLL = 4
"""How many segments a run copies before it checks its lock, and a request to stop if it is continuous."""


def ingest(
    session: TableSession,
    spark: SparkSession,
    settings: IngestSettings,
    on_batch: Callable[[BatchResult], None],
    is_stopping: threading.Event | None = None,
    create_tables: CreateTables = create_none,
    lock: LogLock | None = None,
) -> int:
    """Drain the log.

    :param on_batch: called after each batch.
    :param create_tables: called in a batch with tables that took no entries.
    :param is_stopping: ends the run after the current batch when it is set.
    :param lock: of the log; a batch of a process that lost it changes no table.
    :returns: how many drained segments are removed.
    :raises LogError: the log or a source cannot be read.
    :raises IcemigrateError: the catalog, the storage or Spark failed; the next run repeats the batch.
    """
    lock = lock or LogLock()
    _return_segments(settings, lock)
    _collect(settings, lock)
    checkpoint = stream_checkpoint(settings.checkpoint, 1 + len(settings.kafka))
    batches = _Batches(session, settings, on_batch, create_tables, checkpoint, lock)
    stopping = is_stopping or threading.Event()
    try:
        with convert_java_errors():
            use_own_python(spark)
            removed = _drain_all(spark, settings, batches, stopping)
            while batches.has_new_tables and settings.interval_s is None and not stopping.is_set():
                # The entries of new tables wait in the folder of deferred segments.
                batches.has_new_tables = False
                _return_segments(settings, lock)
                removed += _drain_all(spark, settings, batches, stopping)
    except (EngineError, LogError) as error:
        if stopping.is_set():
            failed = f"the run was asked to stop, and its last batch failed: {batches.failure or error}"
            hint = "send the signal to the command alone; the next run repeats the batch"
            raise EngineError(failed, hint) from None
        if batches.failure is not None:
            raise batches.failure from None  # Spark has only its text, below those of its own calls
        raise
    finally:
        checkpoint.close()
    return removed + _remove_drained(settings)


def _drain_all(
    spark: SparkSession, settings: IngestSettings, batches: _Batches, stopping: threading.Event
) -> int:
    """Run streams until one ends without an error.

    Spark's source for Kafka fails in its report on a repeated batch, which is complete then: the method
    ``metrics()`` of its ``KafkaMicroBatchStream`` expects a search for new records before that batch.

    :returns: how many drained segments are removed.
    """
    while True:
        complete = last_complete(batches.checkpoint.folder)
        try:
            with convert_java_errors():
                return _drain(spark, settings, batches, stopping)
        except EngineError:
            is_complete = last_complete(batches.checkpoint.folder) > complete
            if not settings.kafka or batches.failure is not None or not is_complete:
                raise


def _drain(
    spark: SparkSession, settings: IngestSettings, batches: _Batches, stopping: threading.Event
) -> int:
    """Run a stream to its end.

    :returns: how many drained segments are removed.
    """
    batches.source = _source(settings)
    if settings.interval_s is None and batches.is_drained():
        return 0
    start = _start if settings.trigger is None or settings.interval_s is None else _start_when_due
    query = start(spark, settings, batches)
    try:
        removed = _watch(query, settings, stopping, batches)
    except Exception:
        # The caller gives up the lock of the log.  A second Ctrl-C does not wait for the batch.
        _end(query, batches)
        raise
    _end(query, batches)
    batches.lock.require_held()
    batches.checkpoint.save()
    return removed


def _watch(query: Any, settings: IngestSettings, stopping: threading.Event, batches: _Batches) -> int:
    """Wait for the end of a stream or a request to stop, and maintain the log of a continuous run.

    :returns: how many drained segments are removed.
    """
    waited = removed = 0
    while not query.awaitTermination(_POLL_SECONDS):
        waited += _POLL_SECONDS
        batches.lock.require_held()
        batches.checkpoint.save()
        if settings.interval_s is not None:
            _retry_tables(settings, batches.retries)
            _collect(settings, batches.lock, is_complete=False)
        if settings.interval_s is not None and waited >= _MAINTENANCE_SECONDS:
            seal_abandoned(settings.log)
            removed += _remove_drained(settings)
            waited = 0
        if stopping.is_set() or (settings.interval_s is None and batches.is_drained()):
            break
    return removed


def _end(query: Any, batches: _Batches) -> None:
    """End a stream after its current batch, which Spark records as complete after the batch's own work."""
    with batches.finish():
        until = time.monotonic() + _RECORDED_SECONDS
        while batches.is_recording() and query.isActive and time.monotonic() < until:
            time.sleep(0.05)
        query.stop()


def _return_segments(settings: IngestSettings, lock: LogLock) -> None:
    """Seal what killed writers left, and take deferred entries back into the log."""
    lock.require_held()
    seal_abandoned(settings.log)
    take_back(stream_id(settings.checkpoint), last_complete(settings.checkpoint), settings.log)


def _collect(settings: IngestSettings, lock: LogLock, *, is_complete: bool = True) -> None:
    """Copy what the sources have into the log: all of it, or some segments."""
    while settings.sources:
        lock.require_held()
        count = collect(settings.sources, settings.log, _SEGMENTS_PER_POLL)
        if count < _SEGMENTS_PER_POLL or not is_complete:
            return


def _retry_tables(settings: IngestSettings, retries: TableRetries) -> None:
    """Take the deferred entries of tables that are tried again back into the log."""
    due = retries.due_batches(time.monotonic())
    if due and (id_ := stream_id(settings.checkpoint)) is not None:
        complete = last_complete(settings.checkpoint)
        take_back(id_, complete, settings.log, due.__contains__)
        retries.forget(number for number in due if number <= complete)


def _remove_drained(settings: IngestSettings) -> int:
    """Remove the drained segments that are old enough; how many there are."""
    if settings.retention_s is None:
        return 0
    return remove_drained(settings.log, settings.checkpoint, settings.retention_s, time.time())


def _source(settings: IngestSettings) -> FolderSource:
    return stream_source(settings.log, settings.checkpoint, settings.limit, settings.kafka)


def _start(spark: SparkSession, settings: IngestSettings, batches: _Batches) -> Any:
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", _BATCHES_IN_CHECKPOINT)
    # By their bytes, the places of payloads would all be one task's.
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", False)
    stream = batches.source.load(spark).writeStream.foreachBatch(batches.of_stream())
    folder = str(batches.checkpoint.folder)
    return (
        stream.option("checkpointLocation", folder)
        .trigger(**batches.source.trigger(settings.interval_s))
        .start()
    )


def _start_when_due(spark: SparkSession, settings: IngestSettings, batches: _Batches) -> TriggeredStreams:
    """Start streams that end, whenever a batch is due."""
    assert settings.trigger is not None, "the caller checks it"
    assert settings.interval_s is not None, "the caller checks it"

    def start() -> Any:
        batches.source = _source(settings)
        return _start(spark, replace(settings, interval_s=None), batches)

    waiting = WaitingLog(settings.log, settings.checkpoint, settings.trigger, bool(settings.kafka))
    end = partial(_end, batches=batches)
    return TriggeredStreams(waiting, settings.interval_s, start, batches.is_drained, end)


class _Batches:
    """The batches of a run.

    :ivar source: of the current stream, which sets it.
    :ivar lock: of the log, checked before each change of it.
    :ivar failure: the error that ended it.
    :ivar retries: the tables that have a problem.
    :ivar has_new_tables: whether entries wait for tables that are created now.
    """

    source: FolderSource

    def __init__(
        self,
        session: TableSession,
        settings: IngestSettings,
        on_batch: Callable[[BatchResult], None],
        create_tables: CreateTables,
        checkpoint: StreamCheckpoint,
        lock: LogLock,
    ) -> None:
        self._session, self._settings, self._on_batch = session, settings, on_batch
        self._create_tables = create_tables
        self._streams = 0
        self._done = -1
        self.has_new_tables = False
        self.checkpoint, self.lock = checkpoint, lock
        self._is_running = threading.Lock()
        self.failure: Exception | None = None
        self.retries = TableRetries()
        environment = session.environment
        self._context = BatchContext(
            environment.catalog.settings,
            settings.tables,
            environment.names.names_only(),
            settings.quarantine,
            reserved_of(environment),
            sinks=settings.sinks,
            log=settings.log,
            observed=settings.observed,
        )
        sinks = settings.sinks
        files = [] if sinks.folder is None else [ParquetSink(sinks)]
        self._sinks: list[Sink] = [IcebergSink(session), *files]

    def is_drained(self) -> bool:
        """Whether a run without an interval can be ended; a stream that ends by itself is not."""
        return self.source.is_drained(self.checkpoint.folder)

    def is_recording(self) -> bool:
        """Whether the checkpoint lacks the completion of a batch that is done."""
        return self._done > last_complete(self.checkpoint.folder)

    @contextmanager
    def finish(self) -> Iterator[None]:
        """A block after the end of the current batch, in which the stream ends; no other batch begins."""
        with self._is_running:
            self._streams += 1
            yield

    def of_stream(self) -> Callable[[DataFrame, int], None]:
        """The function that runs the batches of the next stream."""
        return partial(self._run_batch, self._streams)

    def _run_batch(self, stream: int, segments: DataFrame, number: int) -> None:
        """Run one batch.

        :param stream: the number of its stream; a batch that waited for the end of its stream fails.
        """
        with self._is_running:
            if stream != self._streams:
                raise EngineError("the stream of this batch has ended", "run the command again")
            try:
                with convert_java_errors():
                    done = self._run(segments, number)
                self._on_batch(done)
                self._done = number
            except Exception as error:
                self.failure = error
                raise

    def _run(self, segments: DataFrame, number: int) -> BatchResult:
        self.lock.require_held()
        self.checkpoint.save()
        id_ = stream_id(self._settings.checkpoint)
        assert id_ is not None, "Spark writes the id before the first batch"
        drop_deferred(id_, number, self._settings.log)
        self.source.require_segments(self.checkpoint.folder, number)
        entries = self.source.entries(segments)
        if self.source.may_repeat(self.checkpoint.folder, number):
            entries = entries.dropDuplicates()
        ordered = entries.repartition("tenant", "kind").sortWithinPartitions(
            "tenant", "kind", "segment", "offset"
        )
        began_s = time.time()
        clock, paused = PhaseClock(self.lock.require_held), self.retries.paused(time.monotonic())
        with clock.phase("write files"):
            latest_ns, batch = int((began_s + _CLOCK_SECONDS) * 1e9), f"{id_}-{number}"
            context = replace(self._context, paused=paused, latest_ns=latest_ns, batch=batch)
            rows = ordered.mapInArrow(partial(file_batches, context), FILE_COLUMNS).collect()
        results = [read_result(row) for row in rows]
        require_running(self._session, results)
        committed = publish_all(self._sinks, batch, results, paused, clock)
        failed = [table for table in committed if table.problem is not None]
        deferred = 0
        if failed:
            with clock.phase("defer entries"):
                deferred = defer_entries(_of_tables(entries, failed), id_, number, self._settings.log)
        created = CreatedTables()
        if failed:
            with clock.phase("create tables"):
                created = self._create_tables(without_paused(failed, paused))
            committed = list(created.with_reasons(committed))
        with clock.phase("record totals"):
            record_attributes(self._settings.checkpoint, number, results, committed, began_s)
            record_totals(self._settings.checkpoint, number, committed, began_s, time.time())
        outcomes = self.retries.record(number, committed, paused, time.monotonic())
        waited_for = created.waited_for(committed)
        self.retries.retry(waited_for)
        self.has_new_tables |= bool(waited_for)
        return BatchResult(number, tuple(committed), deferred, outcomes, clock.phases, created.names)


def _of_tables(entries: DataFrame, tables: Sequence[TableBatch]) -> DataFrame:
    """The entries of some tables."""
    pairs = entries.sparkSession.createDataFrame(
        [(table.tenant, table.kind) for table in tables], "tenant string, kind string"
    )
    return entries.join(pairs, ["tenant", "kind"], "left_semi")
