"""When a continuous run starts a batch: it merges what waits, by size and by age.

What waits stays in the log.  Each time a batch is due, a stream drains everything that is there and ends, so
batches, limits and the checkpoint are those of a run that ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Protocol

from icemigrate.frozen import Frozen
from icemigrate.pipeline.drained_segments import drained_segments
from icemigrate.pipeline.stream_checkpoint import last_complete, last_planned
from icemigrate.wal.log_folder import SegmentFile, sealed_files
from icemigrate.wal.storage_path import AnyPath


class BatchTrigger(Frozen):
    """What starts a batch.

    :param size: of the segments that wait, in bytes.
    :param delay_s: how long the oldest of them waits at most, in seconds.
    """

    size: int
    delay_s: float

    def is_due(self, waiting: Collection[SegmentFile], waits_for_s: float, now_s: float) -> bool:
        """Whether a batch starts now.

        :param waiting: the segments that no batch has.
        :param waits_for_s: how long this run has seen that some wait: the clock of a storage can be wrong.
        :param now_s: in seconds since 1970.
        """
        if not waiting:
            return False
        oldest_s = min(one.sealed_s for one in waiting)
        is_old = max(now_s - oldest_s, waits_for_s) >= self.delay_s
        return is_old or sum(one.size for one in waiting) >= self.size


class WaitingLog:
    """What of a log waits, looked at again and again.

    :param has_topics: whether topics of Kafka are read too: their records are not counted, so a batch starts
        after each delay.
    :param clock: in seconds, never set back.
    """

    def __init__(
        self,
        log: AnyPath,
        checkpoint: AnyPath,
        trigger: BatchTrigger,
        has_topics: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._checkpoint, self._trigger = log, checkpoint, trigger
        self._has_topics, self._clock = has_topics, clock
        self._since_s = clock() - trigger.delay_s

    def is_due(self) -> bool:
        """Whether a batch starts now; one that was interrupted does.

        :raises LogError: the log cannot be read.
        :raises EngineError: the checkpoint cannot be read.
        """
        complete = last_complete(self._checkpoint)
        if last_planned(self._checkpoint) > complete:
            return True
        drained = frozenset(drained_segments(self._log, self._checkpoint, complete))
        waiting = [one for one in sealed_files(self._log) if one.path not in drained]
        waits_for_s = self._clock() - self._since_s
        if self._has_topics and waits_for_s >= self._trigger.delay_s:
            return True
        if not waiting and not self._has_topics:
            self._since_s = self._clock()
        return self._trigger.is_due(waiting, waits_for_s, time.time())

    def drained(self) -> None:
        """Note that everything is drained."""
        self._since_s = self._clock()


class Stream(Protocol):
    """A query of Spark, with Spark's names."""

    def awaitTermination(self, timeout: int) -> bool | None:  # noqa: N802
        """Whether it ended, after at most so many seconds."""
        ...

    def stop(self) -> None:
        """End it now."""
        ...


class TriggeredStreams:
    """Streams that run whenever a batch is due; to its caller, they are one stream that goes on.

    :param waiting: says when a batch is due.
    :param interval_s: how often it is asked, in seconds.
    :param start: starts a stream that drains everything.
    :param is_drained: whether a stream that runs until it is stopped can be stopped.
    :param end: ends a stream after its batch.
    """

    def __init__(
        self,
        waiting: WaitingLog,
        interval_s: float,
        start: Callable[[], Stream],
        is_drained: Callable[[], bool],
        end: Callable[[Stream], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._waiting, self._interval_s = waiting, interval_s
        self._begin, self._is_drained, self._end = start, is_drained, end
        self._sleep = sleep
        self._stream: Stream | None = None
        self._left_s = 0.0

    def awaitTermination(self, timeout: int) -> bool:  # noqa: N802
        """See :class:`Stream`; it goes on until it is stopped.

        :raises: as a stream does, and as :meth:`WaitingLog.is_due` does.
        """
        if self._stream is None and self._left_s <= 0:
            self._left_s = self._interval_s
            if self._waiting.is_due():
                self._stream = self._begin()
        if self._stream is None:
            self._left_s -= timeout
            self._sleep(timeout)
        elif self._stream.awaitTermination(timeout) or self._is_drained():
            self._end(self._stream)
            self._waiting.drained()
            self._stream = None
        return False

    def stop(self) -> None:
        """End the stream that runs, if one does."""
        if self._stream is not None:
            self._stream.stop()
