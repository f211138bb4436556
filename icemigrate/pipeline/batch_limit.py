"""How much a batch has at most: a number of segments, or their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.frozen import Frozen
from icemigrate.wal.log_folder import SegmentFile


class BatchLimit(Frozen):
    """The limit of a batch; Spark's source of files knows one kind of limit at a time.

    :param segments: how many a batch has, where ``size`` is ``None``.
    :param size: of the segments in bytes; a larger segment is a batch of its own.
    """

    segments: int
    size: int | None = None

    @property
    def spark_option(self) -> tuple[str, int]:
        """The option of Spark's source of files, and its value."""
        if self.size is None:
            return "maxFilesPerTrigger", self.segments
        return "maxBytesPerTrigger", self.size

    def first(self, waiting: Iterable[SegmentFile]) -> Iterator[SegmentFile]:
        """The segments of the next batch, at least one of those that wait.

        :param waiting: the oldest first.
        """
        count = size = 0
        for segment in waiting:
            count, size = count + 1, size + segment.size
            is_over = count > self.segments if self.size is None else size > self.size
            if is_over and count > 1:
                return
            yield segment
