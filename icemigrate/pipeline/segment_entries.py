"""The entries of segments as Arrow batches, in Spark's Python processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from icemigrate.spark.task_errors import carry_errors
from icemigrate.wal.entries import Entry, is_tenant_id, tenant_problem
from icemigrate.wal.log_folder import LogError, read_segment
from icemigrate.wal.segment_format import SegmentParts, StoredEntry
from icemigrate.wal.storage_path import AnyPath

ENTRY_COLUMNS = (
    "tenant string, kind string, encoding string, time_ns long, segment string, offset long, "
    "payload binary, problem string, payload_at long, payload_size long"
)
"""One entry, or damaged bytes with a problem and without a tenant; in Spark's syntax.

Of a file of the log, ``payload_at`` and ``payload_size`` say where the segment has the payload, which is
null then, see :mod:`icemigrate.pipeline.entry_payloads`.
"""
_LARGEST_BATCH = 8 * 1024 * 1024
"""In bytes of payloads."""
_PLACES_PER_BATCH = 10_000


def entry_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """The entries of files of the log, with the places of their payloads.

    :param batches: ``pyarrow.RecordBatch`` with ``path``, as Spark writes the paths of files.
    :raises LogError: a file cannot be read.
    """
    paths = (path.as_py() for batch in batches for path in batch.column("path"))
    rows = (row for path in paths for row in _file_rows(path))
    with carry_errors():
        while found := list(islice(rows, _PLACES_PER_BATCH)):
            yield _batch(found)


def segment_batches(segments: Iterable[tuple[str, bytes]]) -> Iterator[Any]:
    """The entries of segments; damaged bytes and ids that no table can have are problems.

    :param segments: names and contents.
    :return: ``pyarrow.RecordBatch`` with the columns of :data:`ENTRY_COLUMNS`.
    """
    return row_batches(row for name, content in segments for row in segment_rows(name, content))


def row_batches(found: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Rows of entries as Arrow batches of a limited size.

    :param found: with the columns of :data:`ENTRY_COLUMNS` up to the problem.
    """
    rows = list[tuple[Any, ...]]()
    size = 0
    for row in found:
        rows.append((*row, None, None))
        size += len(row[6])
        if size >= _LARGEST_BATCH:
            yield _batch(rows)
            rows, size = [], 0
    if rows:
        yield _batch(rows)


def segment_rows(name: str, content: bytes) -> Iterator[tuple[Any, ...]]:
    """The rows of one segment, with the columns of :data:`ENTRY_COLUMNS` up to the problem."""
    return (row for row, _ in _placed_rows(name, content))


def _placed_rows(name: str, content: bytes) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The rows of one segment, each with the place of its payload."""
    parts = SegmentParts(content)
    for part in parts:
        if isinstance(part, StoredEntry):
            yield _entry_row(name, part.offset, part.entry), parts.end - len(part.entry.payload)
        else:
            data = content[part.offset : part.offset + part.length]
            yield (None, None, None, None, name, part.offset, data, part.reason), part.offset
    if not parts.is_sealed:
        reason = "the segment ends without its footer"
        yield (None, None, None, None, name, len(content), b"", reason), len(content)


def _file_rows(written: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a file of the log, with all columns.

    Spark lists symbolic links too, whose entries another segment can have.
    """
    path = Path(written.removeprefix("file://").removeprefix("file:"))
    if path.is_symlink():
        problem = "the segment is a symbolic link, which is not read"
        yield (None, None, None, None, path.name, 0, b"", problem, None, None)
        return
    content = read_segment(path)
    if not content and not path.exists():
        raise missing_segment(path)
    for (*row, payload, problem), at in _placed_rows(path.name, content):
        yield (*row, None, problem, at, len(payload))


def missing_segment(path: AnyPath) -> LogError:
    """The error of a segment that is in the batch, and not in the log."""
    return LogError(
        f"the segment {path} is missing or empty", "restore the segment: the next run repeats its batch"
    )


def _entry_row(name: str, offset: int, entry: Entry) -> tuple[Any, ...]:
    kind, encoding = entry.kind.value, entry.encoding.value
    if is_tenant_id(entry.tenant):
        return (entry.tenant, kind, encoding, entry.time_ns, name, offset, entry.payload, None)
    problem = tenant_problem(entry.tenant)
    return (None, kind, encoding, entry.time_ns, name, offset, entry.payload, problem)


def _batch(rows: list[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    types = (
        pa.string(),
        pa.string(),
        pa.string(),
        pa.int64(),
        pa.string(),
        pa.int64(),
        pa.binary(),
        pa.string(),
        pa.int64(),
        pa.int64(),
    )
    names = [column.split()[0] for column in ENTRY_COLUMNS.split(", ")]
    columns = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)], names=names
    )
