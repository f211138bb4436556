"""Removes drained segments from a log.

A segment is drained once its batch is complete in the checkpoint of the stream.  Then each of its entries is
in a table, in the quarantine, or in a deferred segment, which is a segment of its own: it is drained by a
later batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from icemigrate.pipeline.stream_checkpoint import complete_segments, last_complete, make_durable
from icemigrate.wal.log_folder import remove_segment, sealed_segments


def drained_segments(log: Path, checkpoint: Path, complete: int) -> tuple[Path, ...]:
    """The sealed segments of complete batches, the oldest first.

    :param complete: the number of the last complete batch; -1 for none.
    :raises LogError: the log cannot be read.
    :raises EngineError: the checkpoint cannot be read.
    """
    # As Spark writes paths: without `..`, and with symbolic links.
    folder = Path(os.path.normpath(log.absolute()))
    found = complete_segments(checkpoint, complete)
    return tuple(path for path in sealed_segments(log) if folder / path.name in found)


def remove_drained(log: Path, checkpoint: Path, retention_s: float, now_s: float) -> int:
    """Remove the drained segments that were sealed before a time.

    :param retention_s: how long a segment stays after it was sealed, in seconds.
    :param now_s: in seconds since 1970.
    :returns: how many are removed.
    :raises LogError: a segment cannot be removed.
    :raises EngineError: the checkpoint cannot be read or made durable.
    """
    drained = drained_segments(log, checkpoint, last_complete(checkpoint))
    expired = tuple(_sealed_before(drained, now_s - retention_s))
    if expired:
        # Without it, a power failure could bring back a batch whose segments are removed.
        make_durable(checkpoint)
    for path in expired:
        remove_segment(path)
    return len(expired)


def _sealed_before(segments: Iterable[Path], time_s: float) -> Iterator[Path]:
    for path in segments:
        with suppress(FileNotFoundError):  # another program removed it
            if path.stat().st_mtime <= time_s:
                yield path
