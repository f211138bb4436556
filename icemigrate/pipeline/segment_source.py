"""The segments of a remote log as a streaming source of Spark, in Python.

Spark reads S3 through jars of Hadoop and of Amazon, 300 MB that no other part of the pipeline needs.  With
this source, Spark schedules batches and keeps their offsets, and its Python processes read the segments as
the log's writers wrote them (:mod:`icemigrate.wal.storage_path`).  Imported only where a stream starts:
PySpark's classes are its bases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from icemigrate.errors import EngineError
from icemigrate.pipeline.batch_limit import BatchLimit
from icemigrate.pipeline.segment_entries import ENTRY_COLUMNS, missing_segment, segment_batches
from icemigrate.pipeline.segment_lists import SegmentLists
from icemigrate.spark.task_errors import carry_errors
from icemigrate.wal.log_folder import read_segment, sealed_files
from icemigrate.wal.storage_path import AnyPath, StoragePath

_OFFSET = "logOffset"
"""The key that Spark's own source of files has in its offsets."""


class _Segments(InputPartition):
    """The segments of one task."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(None)
        self.names = tuple(names)


class SegmentReader(DataSourceStreamReader):
    """Finds new segments and reads them; an offset is the number of a list of segments.

    :param log: the folder of the segments.
    :param checkpoint: where the lists are.
    :param limit: of a list; Spark 4.1 cannot limit a batch of a source in Python.
    :param tasks: among which the segments of a batch are divided, at most.
    :param planned: the number of the last list that a batch has; -1 for none.
    """

    def __init__(
        self, log: StoragePath, checkpoint: AnyPath, limit: BatchLimit, tasks: int, planned: int
    ) -> None:
        self._log, self._lists = log, SegmentLists(checkpoint)
        self._limit, self._tasks, self._planned = limit, tasks, planned
        self._known: set[str] | None = None
        self._last = -1

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """The offset before the first list."""
        return {_OFFSET: -1}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """The last list, after a new one where there are new segments.

        :raises TaskError: the log or the checkpoint cannot be read or written.
        """
        with carry_errors():
            return self._latest()

    def _latest(self) -> dict[str, int]:
        if self._known is None:
            lists = self._lists.read()
            self._known = {name for names in lists.values() for name in names}
            self._last = max(lists, default=-1)
            if self._last > self._planned:
                return {_OFFSET: self._last}  # of a process that ended before a batch had it
        known = self._known
        waiting = (one for one in sealed_files(self._log) if one.path.name not in known)
        new = [one.path.name for one in self._limit.first(waiting)]
        if new:
            self._lists.add(self._last + 1, new)
            known.update(new)
            self._last += 1
        return {_OFFSET: self._last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[_Segments]:
        """The segments of the lists after one offset, up to another one.

        :raises TaskError: a list is missing, or the checkpoint cannot be read.
        """
        with carry_errors():
            return self._between(start, end)

    def _between(self, start: dict[str, int], end: dict[str, int]) -> Sequence[_Segments]:
        numbers = range(start[_OFFSET] + 1, end[_OFFSET] + 1)
        lists = self._lists.read() if numbers else {}
        if missing := [number for number in numbers if number not in lists]:
            raise EngineError(
                f"the checkpoint lacks list {missing[0]} of segments",
                "give the checkpoint that earlier runs used",
            )
        names = [name for number in numbers for name in lists[number]]
        tasks = min(self._tasks, len(names))
        return [_Segments(names[task::tasks]) for task in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The entries of a task's segments, as Arrow batches.

        :raises TaskError: a segment cannot be read.
        """
        assert isinstance(partition, _Segments)
        with carry_errors():
            yield from segment_batches(self._contents(partition.names))

    def _contents(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            content = read_segment(self._log / name)
            if not content:
                raise missing_segment(self._log / name)
            yield name, content


def segment_source(reader: SegmentReader) -> type[DataSource]:
    """The class that a session registers under its :meth:`name`.

    The reader is part of the class, and no option, because Spark shows options and the reader has keys of
    the storage.
    """

    class SegmentSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "icemigrate_segments"

        def schema(self) -> str:
            return ENTRY_COLUMNS

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 (Spark's names)
            return reader

    return SegmentSource
