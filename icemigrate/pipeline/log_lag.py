"""How far a stream is behind its log, measured again and again.

A sealed segment never changes, so each one is read once.  One measurement reads a limited number of bytes,
the oldest segments first: the oldest entry is right at once, and counts are complete after some measurements.
"""

from __future__ import annotations

from itertools import chain

from icemigrate.frozen import Frozen
from icemigrate.pipeline.deferred_entries import waiting_segments
from icemigrate.pipeline.drained_segments import drained_segments
from icemigrate.pipeline.stream_checkpoint import last_complete, stream_id
from icemigrate.pipeline.waiting_entries import WaitingEntries, add_up, count_entries
from icemigrate.wal.log_folder import read_segment, sealed_files
from icemigrate.wal.storage_path import AnyPath

LARGEST_READ = 256 * 1024 * 1024
"""Bytes that one measurement reads."""


class LogLag(Frozen):
    """What waits in sealed segments.

    :param waiting: by tenant and kind, of the segments that were read, also deferred ones.
    :param segments: sealed segments without those with deferred entries.
    :param size: of these segments, in bytes.
    :param deferred: entries of tables with a problem.
    :param unread: segments whose entries are not counted yet.
    """

    waiting: tuple[WaitingEntries, ...] = ()
    segments: int = 0
    size: int = 0
    deferred: int = 0
    unread: int = 0


class LagMeter:
    """Measures the lag of a stream; keeps the counts of segments that still wait.

    :param largest_read: bytes that a measurement reads.
    """

    def __init__(self, log: AnyPath, checkpoint: AnyPath, largest_read: int = LARGEST_READ) -> None:
        self._log, self._checkpoint, self._largest_read = log, checkpoint, largest_read
        self._counts = dict[AnyPath, tuple[WaitingEntries, ...]]()

    def measure(self) -> LogLag:
        """Measure.

        :raises LogError: the log cannot be read.
        :raises EngineError: the checkpoint cannot be read.
        """
        complete = last_complete(self._checkpoint)
        deferred = waiting_segments(stream_id(self._checkpoint), complete, self._log)
        drained = frozenset(drained_segments(self._log, self._checkpoint, complete))
        sizes = {one.path: one.size for one in sealed_files(self._log) if one.path not in drained}
        paths = (*sizes, *deferred)
        self._counts = {path: self._counts[path] for path in paths if path in self._counts}
        room = self._largest_read
        for path in paths:
            if path not in self._counts and room > 0:
                content = read_segment(path)
                room -= len(content)
                self._counts[path] = count_entries(content)
        return LogLag(
            add_up(chain.from_iterable(self._counts.values())),
            len(sizes),
            sum(sizes.values()),
            sum(one.entries for path in deferred for one in self._counts.get(path, ())),
            len(paths) - len(self._counts),
        )
