"""Entries of tables with a problem: they stay in the log, in segments of their own.

The folder ``deferred`` of the log has them.  The name of a segment begins with its batch, and the next run
takes a segment back into the log once its batch is complete, so that an entry is in one of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from icemigrate.otlp.telemetry_rows import is_readable
from icemigrate.pipeline.entry_payloads import entries_with_payloads
from icemigrate.spark.task_errors import carry_errors
from icemigrate.wal.entries import Entry, EntryKind, PayloadEncoding
from icemigrate.wal.log_folder import (
    SEALED,
    SEGMENT_BYTES,
    create_folder,
    move_segment,
    remove_abandoned,
    remove_segment,
    sealed_segments,
    write_sealed,
)
from icemigrate.wal.storage_path import AnyPath

DEFERRED = "deferred"
TAKEN_BACK = "0-"
"""Begins the name of a deferred segment that is in the log again."""
DEFERRED_COLUMNS = "entries long"


def defer_entries(entries: Any, query: str, number: int, log: AnyPath) -> int:
    """Write entries to deferred segments, which replace those of an earlier attempt of the batch.

    :param entries: a ``DataFrame`` with the columns of
        :data:`~icemigrate.pipeline.segment_entries.ENTRY_COLUMNS`.
    :param query: the id of the stream.
    :param number: of the batch.
    :returns: how many there are.
    :raises LogError: a segment cannot be written.
    """
    create_folder(log / DEFERRED)
    prefix = f"{query}-{number}"
    deferred = entries.mapInArrow(partial(_write_segments, log, prefix), DEFERRED_COLUMNS).collect()
    return sum(row.entries for row in deferred)


def drop_deferred(query: str, number: int, log: AnyPath) -> None:
    """Remove what an earlier attempt of a batch deferred."""
    for path in _deferred_segments(log):
        if path.name.startswith(f"{query}-{number}-"):
            remove_segment(path)


def take_back(
    query: str | None, complete: int, log: AnyPath, is_due: Callable[[int], bool] = lambda number: True
) -> int:
    """Move deferred segments of complete batches back into the log.

    :param query: the id of the stream; ``None`` before its first run, which gets those of all streams: with
        a new checkpoint, no later run would take them back.
    :param complete: the number of its last complete batch; -1 for none.
    :param is_due: whether the entries of a batch are tried again now.
    :returns: how many segments there are.
    """
    count = 0
    if (log / DEFERRED).is_dir():
        remove_abandoned(log / DEFERRED)  # the log has their entries
    for path in _deferred_segments(log):
        number = None if query is None else _batch_of(path, query)
        if query is None or (number is not None and number <= complete and is_due(number)):
            move_segment(path, log / f"{TAKEN_BACK}{path.name}")
            count += 1
    return count


def waiting_segments(query: str | None, complete: int, log: AnyPath) -> tuple[AnyPath, ...]:
    """The deferred segments whose entries no other segment has: not those of a batch that is not complete.

    :param query: the id of the stream; ``None`` before its first run.
    :param complete: the number of its last complete batch; -1 for none.
    """
    found = _deferred_segments(log)
    if query is None:
        return found
    numbers = ((path, _batch_of(path, query)) for path in found)
    return tuple(path for path, number in numbers if number is None or number <= complete)


def _batch_of(path: AnyPath, query: str) -> int | None:
    """The number of a segment's batch; ``None`` where the segment is of another stream."""
    number = path.name.removeprefix(f"{query}-").partition("-")[0]
    return int(number) if path.name.startswith(f"{query}-") and number.isdigit() else None


def _deferred_segments(log: AnyPath) -> tuple[AnyPath, ...]:
    folder = log / DEFERRED
    return sealed_segments(folder) if folder.is_dir() else ()


def _write_segments(log: AnyPath, prefix: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Write the entries of one task as segments."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    count = 0
    with carry_errors(), entries_with_payloads(log, batches) as found:
        for part, entries in enumerate(_parts(found)):
            write_sealed(log / DEFERRED / f"{prefix}-{task:05}{part:03}{SEALED}", entries)
            count += len(entries)
    yield pa.record_batch([pa.array([count], pa.int64())], names=["entries"])


def _parts(found: Iterable[Mapping[str, Any]]) -> Iterator[list[Entry]]:
    """The entries that can be read, as many as a segment has; the quarantine has the others."""
    part, size = list[Entry](), 0
    for row in found:
        kind, encoding = EntryKind(row["kind"]), PayloadEncoding(row["encoding"])
        if not is_readable(row["payload"], kind, encoding):
            continue
        part.append(Entry(row["tenant"], kind, row["time_ns"], row["payload"], encoding))
        size += len(row["payload"])
        if size >= SEGMENT_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
