"""Copies the requests of the Collector's files into segments of the log, each exactly once.

The folder ``collector`` of the log has the progress: one file, which is replaced with each segment.  A
segment is written there first.  Then the progress is replaced; it names the segment, and how far each file
is read.  Then the segment is moved into the log.  A process that ends before the progress is replaced leaves
a segment that the next run writes again; one that ends afterwards leaves a segment that the next run moves.
So stream, batches, deferral and retention treat these requests like entries of any writer.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain

import msgspec

from icemigrate.errors import UsageError, os_error_reason
from icemigrate.frozen import Frozen, replace
from icemigrate.otlp.tenant_requests import TenantRequest, split_request
from icemigrate.pipeline.collector_files import (
    CollectorFile,
    FileProgress,
    file_key,
    folder_of,
    opened,
    position_in,
    present_keys,
    progress_at,
    source_files,
    unreadable,
)
from icemigrate.pipeline.collector_records import Position, Record, read_records
from icemigrate.project.telemetry_sources import FileSource
from icemigrate.wal.entries import Entry, UnreadableBytes
from icemigrate.wal.log_folder import (
    SEALED,
    SEGMENT_BYTES,
    LogError,
    create_folder,
    move_segment,
    remove_abandoned,
    remove_segment,
    sealed_segments,
    write_sealed,
)
from icemigrate.wal.storage_path import AnyPath, replace_file

COLLECTOR = "collector"
_PROGRESS = "progress.json"
_KEPT_S = 2 * 24 * 60 * 60
"""How many seconds a file is missing before its progress is removed: a rename can hide it for a moment."""


class CollectedProgress(Frozen):
    """How far the files are read.

    :param number: of the last segment; 0 before the first one.
    :param segment: its name in the log.
    :param files: by what identifies a file.
    """

    number: int = 0
    segment: str = ""
    files: Mapping[str, FileProgress] = msgspec.field(default_factory=dict)


def collect(sources: Iterable[FileSource], log: AnyPath, most: int | None = None) -> int:
    """Copy what the Collector has written since the last call.

    The caller is the only process that drains the log.

    :param most: how many segments are written at most; ``None`` for all.
    :returns: how many are written.
    :raises LogError: a file or the log cannot be read or written.
    :raises UsageError: a file is in Protocol Buffers, and its source names no kind.
    """
    folder = log / COLLECTOR
    try:
        create_folder(folder)
    except OSError as error:
        raise _unusable(folder, error) from error
    progress = _finish_last(log, folder)
    count = 0
    while most is None or count < most:
        collection = _Collection(progress, sources)
        with closing(collection.parts()) as parts:
            first = next(parts, None)
            if first is None and not collection.has_moved:
                break
            path = folder / f"{progress.number + 1}{SEALED}"
            write_sealed(path, parts if first is None else chain((first,), parts))
        progress = collection.progress()
        _write_progress(folder, progress)
        _publish(log, folder, progress)
        count += 1
    return count


def read_progress(folder: AnyPath) -> CollectedProgress:
    """The progress in the folder of a log.

    :raises LogError: it cannot be read.
    """
    path = folder / _PROGRESS
    try:
        return msgspec.json.decode(path.read_bytes(), type=CollectedProgress)
    except FileNotFoundError:
        return CollectedProgress()
    except (OSError, msgspec.DecodeError) as error:
        reason = os_error_reason(error) if isinstance(error, OSError) else "it is damaged"
        raise LogError(
            f"the progress {path} cannot be read: {reason}",
            "restore it; without it, all files of the Collector are ingested again",
        ) from error


class _Collection:
    """The requests of one segment, in the order of the files.

    :ivar has_moved: whether the position in a file has changed.
    """

    def __init__(self, before: CollectedProgress, sources: Iterable[FileSource]) -> None:
        self._before = before
        self._files = dict(before.files)
        self._sources = sources
        self._size = 0
        self._seen = set[str]()
        self._has_searched_all = False
        self.has_moved = False

    def parts(self) -> Generator[Entry | UnreadableBytes, None, None]:
        """What the segment gets; its end is the end of the files, or of the segment's size."""
        for file in (file for source in self._sources for file in source_files(source)):
            if self._size >= SEGMENT_BYTES:
                return
            yield from self._parts_of(file)
        self._has_searched_all = True

    def progress(self) -> CollectedProgress:
        """The progress with the segment, after its last part."""
        number = self._before.number + 1
        name = f"{time.time_ns() // 1_000_000:013}-collector-{number}{SEALED}"
        return CollectedProgress(number, name, dict(self._kept(time.time())))

    def _kept(self, now_s: float) -> Iterator[tuple[str, FileProgress]]:
        """The files, except for those that are missing for long in a folder that this run searches."""
        present = dict[str, frozenset[str] | None]()
        for key, one in self._files.items():
            if key in self._seen or not self._has_searched_all:
                yield key, one
                continue
            folder = folder_of(key)
            if folder not in present:
                present[folder] = present_keys(folder, self._sources)
            keys = present[folder]
            if keys is None or key in keys:
                yield key, replace(one, missing_since_s=None)
                continue
            since_s = now_s if one.missing_since_s is None else one.missing_since_s
            if now_s - since_s < _KEPT_S:
                yield key, replace(one, missing_since_s=since_s)

    def _parts_of(self, file: CollectorFile) -> Iterator[Entry | UnreadableBytes]:
        with opened(file) as stream:
            if stream is None:
                return
            try:
                key = file_key(file.path, stream)
                self._seen.add(key)
                begin = end = position_in(stream, self._files.get(key))
                for record in read_records(stream, begin, file.rule):
                    yield from self._parts_of_record(record, file, stream.time_ns)
                    end = record.end
                    if self._size >= SEGMENT_BYTES:
                        break
                self.has_moved = self.has_moved or end != begin
                if key in self._files or end != Position():
                    self._files[key] = progress_at(stream, end)
            except OSError as error:
                raise unreadable(file.path, error) from error
            except UsageError as error:
                raise UsageError(f"the file {file.path}: {error.message}", error.hint) from error

    def _parts_of_record(
        self, record: Record, file: CollectorFile, time_ns: int
    ) -> Iterator[Entry | UnreadableBytes]:
        if not record.data.strip():
            return
        if record.problem is not None:
            found: Iterable[TenantRequest | UnreadableBytes] = (UnreadableBytes(record.data, record.problem),)
        else:
            found = split_request(record.data, file.rule)
        for part in found:
            self._size += len(part.payload)
            if isinstance(part, TenantRequest):
                yield Entry(part.tenant, part.kind, time_ns, part.payload, part.encoding)
            else:
                place = f"{file.path.name}, up to byte {record.end.offset}"
                yield UnreadableBytes(part.payload, f"{place}: {part.problem}")


def _finish_last(log: AnyPath, folder: AnyPath) -> CollectedProgress:
    """Move the last segment into the log, if a process did not, and remove one that no progress names."""
    progress = read_progress(folder)
    remove_abandoned(folder)
    _publish(log, folder, progress)
    for path in sealed_segments(folder):
        remove_segment(path)
    return progress


def _publish(log: AnyPath, folder: AnyPath, progress: CollectedProgress) -> None:
    """Move the segment of the progress into the log."""
    path = folder / f"{progress.number}{SEALED}"
    if path.exists():
        move_segment(path, log / progress.segment)


def _write_progress(folder: AnyPath, progress: CollectedProgress) -> None:
    try:
        replace_file(folder / _PROGRESS, msgspec.json.encode(progress))
    except OSError as error:
        raise _unusable(folder, error) from error


def _unusable(folder: AnyPath, error: OSError) -> LogError:
    return LogError(
        f"the folder {folder} cannot be written: {os_error_reason(error)}",
        "check the free space, and the right to write there",
    )
