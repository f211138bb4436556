"""Where a stream of Spark gets the entries of a log: from a folder, or from a remote storage."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icemigrate.pipeline.batch_limit import BatchLimit
from icemigrate.pipeline.kafka_records import kafka_entries
from icemigrate.pipeline.segment_entries import ENTRY_COLUMNS, entry_batches, missing_segment
from icemigrate.pipeline.segment_lists import SegmentLists
from icemigrate.pipeline.stream_checkpoint import last_complete, last_planned, planned_names, source_number
from icemigrate.project.telemetry_sources import KafkaSource
from icemigrate.wal.log_folder import SEALED, LogError, sealed_segments
from icemigrate.wal.storage_path import AnyPath, StoragePath

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LONGEST_AGE = "36500d"
"""Spark ignores files that are so much older than the newest one, by default 7 days."""
_SOURCE = "path string, modificationTime timestamp, length long, content binary"
"""The columns of Spark's source ``binaryFile``."""
_PATTERN = "[]{}*?\\"
"""The characters of a pattern of paths (Spark, ``SparkHadoopUtil.isGlobPath``)."""
_FINDS_PATTERNS = "__globPaths__"
"""Whether Spark takes the names of a batch for patterns (Spark, ``DataSource.GLOB_PATHS_KEY``).

By default it does: a segment ``a[1].wal`` would be read never, and ``*.wal`` would read all segments again.
Without it, Spark 4.1 reads all files of the batch once more for each name with such a character
(``DataSource.checkAndGlobPathIfNecessary``), see :meth:`FolderSource.may_repeat`.
"""
_HIDDEN = ("_", ".")
"""Begin the names of files that Spark does not list."""


class FolderSource:
    """The segments of a local folder, by Spark's own source of files.

    :param log: the folder of the segments.
    :param limit: of a batch.
    """

    def __init__(self, log: Path, limit: BatchLimit) -> None:
        self._log, self._limit = log, limit

    def load(self, spark: SparkSession) -> DataFrame:
        """The stream: the paths of segments, which tasks read, so that no content is in the JVM."""
        return (
            spark.readStream.format("binaryFile")
            .schema(_SOURCE)
            .option("pathGlobFilter", f"*{SEALED}")
            .option(*self._limit.spark_option)
            .option("maxFileAge", _LONGEST_AGE)
            .option(_FINDS_PATTERNS, "false")
            .load(str(self._log))
            .select("path")
        )

    def entries(self, batch: DataFrame) -> DataFrame:
        """The entries of a batch, see :data:`~icemigrate.pipeline.segment_entries.ENTRY_COLUMNS`."""
        return batch.mapInArrow(entry_batches, ENTRY_COLUMNS)

    def require_segments(self, checkpoint: Path, batch: int) -> None:
        """Check that the log has the segments of a batch: Spark leaves out one that it lacks.

        :param checkpoint: the one that Spark writes.
        :raises LogError: a segment is missing.
        """
        for name in sorted(planned_names(checkpoint, batch)):
            if not (path := self._log / name).exists() and not path.is_symlink():
                raise missing_segment(path)

    def may_repeat(self, checkpoint: Path, batch: int) -> bool:
        """Whether Spark reads entries of a batch several times, so that equal ones have to be removed.

        :param checkpoint: the one that Spark writes.
        """
        return any(not set(_PATTERN).isdisjoint(name) for name in planned_names(checkpoint, batch))

    def trigger(self, interval_s: float | None) -> Mapping[str, Any]:
        """When batches begin.

        :param interval_s: seconds between them; ``None`` to end when everything is drained.
        """
        return {"availableNow": True} if interval_s is None else {"processingTime": f"{interval_s} seconds"}

    def is_drained(self, checkpoint: Path) -> bool:
        """Whether a stream without an interval can be ended: this one ends by itself."""
        del checkpoint
        return False


class KafkaAndFolderSource(FolderSource):
    """The segments of a local folder, and topics of Kafka.

    :param kafka: the topics.
    """

    def __init__(self, log: Path, limit: BatchLimit, kafka: Sequence[KafkaSource]) -> None:
        super().__init__(log, limit)
        self._kafka = kafka

    def load(self, spark: SparkSession) -> DataFrame:
        """The stream; the segments are its first source, as ``stream_checkpoint`` reads it."""
        found = super().entries(super().load(spark))
        for topics in self._kafka:
            found = found.union(kafka_entries(spark, topics))
        return found

    def entries(self, batch: DataFrame) -> DataFrame:
        """The entries of a batch: the sources have them."""
        return batch


class StorageSource(FolderSource):
    """The segments of a remote storage, by a source in Python.

    Spark 4.1 has no ``availableNow`` for such a source: it would put everything into one batch (SPARK-55304
    adds it in 4.2).  So the stream looks for segments once a second, and is ended when it has drained those
    that were there at its beginning.

    :param checkpoint: where the lists of segments are.
    """

    def __init__(self, log: StoragePath, checkpoint: AnyPath, limit: BatchLimit) -> None:
        self._storage, self._checkpoint, self._limit = log, checkpoint, limit
        self._waiting = frozenset(path.name for path in sealed_segments(log))
        self._seen = -1

    def load(self, spark: SparkSession) -> DataFrame:
        """The stream."""
        from icemigrate.pipeline.segment_source import SegmentReader, segment_source

        planned = last_planned(self._checkpoint)
        number = -1 if planned < 0 else source_number(self._checkpoint, planned)
        tasks = spark.sparkContext.defaultParallelism
        source = segment_source(SegmentReader(self._storage, self._checkpoint, self._limit, tasks, number))
        spark.dataSource.register(source)
        return spark.readStream.format(source.name()).load()

    def entries(self, batch: DataFrame) -> DataFrame:
        """The entries of a batch: the source has them."""
        return batch

    def require_segments(self, checkpoint: Path, batch: int) -> None:
        """Check nothing: the source reports a segment that the log lacks."""
        del checkpoint, batch

    def may_repeat(self, checkpoint: Path, batch: int) -> bool:
        """Whether entries are read several times: the source reads each segment once."""
        del checkpoint, batch
        return False

    def trigger(self, interval_s: float | None) -> Mapping[str, Any]:
        """When batches begin."""
        return super().trigger(1 if interval_s is None else interval_s)

    def is_drained(self, checkpoint: Path) -> bool:
        """Whether all segments that were there at the beginning are in complete batches.

        :param checkpoint: the one that Spark writes.
        """
        complete = last_complete(checkpoint)
        if last_planned(checkpoint) > complete:
            return False
        if self._waiting and complete > self._seen:
            number = source_number(checkpoint, complete)
            self._waiting -= SegmentLists(self._checkpoint).names_until(number)
            self._seen = complete
        return not self._waiting


def stream_source(
    log: AnyPath, checkpoint: AnyPath, limit: BatchLimit, kafka: Sequence[KafkaSource] = ()
) -> FolderSource:
    """The source of a log, and of topics beside a local one.

    :raises LogError: the log cannot be read, or Spark would read other files, too.
    """
    if isinstance(log, StoragePath):
        assert not kafka, "the arguments of the run were checked"
        return StorageSource(log, checkpoint, limit)
    _require_plain_folder(log)
    if kafka:
        return KafkaAndFolderSource(log, limit, kafka)
    return FolderSource(log, limit)


def _require_plain_folder(log: Path) -> None:
    """Check that Spark takes the folder of a log for neither a pattern nor a table with partitions."""
    if found := next((char for char in str(log.absolute()) if char in _PATTERN), None):
        raise LogError(
            f"the log {log} cannot be drained: Spark takes `{found}` in its path for a pattern",
            f"move the log to a folder whose path has none of the characters `{_PATTERN}`",
        )
    for folder, _, names in os.walk(log):
        inside = Path(folder).relative_to(log)
        segments = [name for name in names if name.endswith(SEALED)]
        if "=" in str(inside) and segments:
            raise LogError(
                f"the log {log} cannot be drained: Spark takes its folder {inside} for a partition",
                f"move {folder} out of the log",
            )
        if Path(folder) == log and (found := next((n for n in segments if n.startswith(_HIDDEN)), None)):
            raise LogError(
                f"the segment {log / found} cannot be drained: Spark reads no file whose name begins with "
                f"`{found[0]}`",
                "give it another name, or move it out of the log",
            )
