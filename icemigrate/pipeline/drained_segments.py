"""Removes drained segments from a log.

A segment is drained once its batch is complete in the checkpoint of the stream.  Then each of its entries is
in a table, in the quarantine, or in a deferred segment, which is a segment of its own: it is drained by a
later batch.
"""

from __future__ import annotations

import os
from pathlib import Path

from icemigrate.pipeline.segment_lists import SegmentLists
from icemigrate.pipeline.stream_checkpoint import (
    complete_segments,
    last_complete,
    make_durable,
    source_number,
)
from icemigrate.wal.log_folder import SegmentFile, remove_segment, sealed_files
from icemigrate.wal.storage_path import AnyPath, StoragePath


def drained_segments(log: AnyPath, checkpoint: AnyPath, complete: int) -> tuple[AnyPath, ...]:
    """The sealed segments of complete batches, the oldest first.

    :param complete: the number of the last complete batch; -1 for none.
    :raises LogError: the log cannot be read.
    :raises EngineError: the checkpoint cannot be read.
    """
    return tuple(one.path for one in _drained_files(log, checkpoint, complete))


def remove_drained(log: AnyPath, checkpoint: AnyPath, retention_s: float, now_s: float) -> int:
    """Remove the drained segments that were sealed before a time.

    :param retention_s: how long a segment stays after it was sealed, in seconds.
    :param now_s: in seconds since 1970.
    :returns: how many are removed.
    :raises LogError: a segment cannot be removed.
    :raises EngineError: the checkpoint cannot be read or made durable.
    """
    drained = _drained_files(log, checkpoint, last_complete(checkpoint))
    expired = tuple(one.path for one in drained if one.sealed_s <= now_s - retention_s)
    if expired and isinstance(checkpoint, Path):
        # Without it, a power failure could bring back a batch whose segments are removed.
        make_durable(checkpoint)
    for path in expired:
        remove_segment(path)
    return len(expired)


def _drained_files(log: AnyPath, checkpoint: AnyPath, complete: int) -> tuple[SegmentFile, ...]:
    if complete < 0:
        return ()
    if isinstance(log, StoragePath):
        names = SegmentLists(checkpoint).names_until(source_number(checkpoint, complete))
        return tuple(one for one in sealed_files(log) if one.path.name in names)
    # As Spark writes paths: without `..`, and with symbolic links.
    folder = Path(os.path.normpath(log.absolute()))
    found = complete_segments(checkpoint, complete)
    return tuple(one for one in sealed_files(log) if folder / one.path.name in found)
