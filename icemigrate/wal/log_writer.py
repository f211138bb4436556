"""Appends entries to a log."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import Enum
from os import PathLike
from pathlib import Path
from types import TracebackType

from icemigrate.errors import UsageError, os_error_reason
from icemigrate.wal.entries import Entry, EntryKind, PayloadEncoding, read_member, require_valid
from icemigrate.wal.log_folder import (
    SEGMENT_BYTES,
    LogError,
    OpenSegment,
    create_folder,
    new_segment,
    remove,
    seal,
    write_all,
)
from icemigrate.wal.segment_format import SegmentEncoder
from icemigrate.wal.segment_upload import SegmentUpload
from icemigrate.wal.storage_path import AnyPath, StoragePath, open_path


class Fsync(Enum):
    """When entries are made durable."""

    ALWAYS = "always"
    """Before :meth:`Writer.append` returns: an appended entry survives a power failure.

    Of a log on a remote storage, it is on the disk of the spool until its segment is uploaded.
    """
    INTERVAL = "interval"
    """Every ``fsync_seconds``: a power failure loses the entries of that time at most."""
    NEVER = "never"
    """When a segment is sealed: an appended entry survives the end of the process, not a power failure."""


class Writer:
    """Appends entries to a log, in segments of its own; any number of writers can use one folder.

    Its methods can be called from several threads.  A segment is sealed, and visible to readers, when it is
    large or old enough, and when the writer is closed.  An error of :meth:`append` means that the entries may
    be missing or may be read all the same; an append that is repeated can then be read twice.

    :param folder: of the log; it is created if it does not exist.  A path, or a URL of a remote storage, such
        as ``s3://bucket/log``.
    :param spool: of a log on a remote storage: a local folder in which segments wait until they are
        uploaded.  While the storage is away, they stay there.
    :param storage: how to sign in to the storage, by PyIceberg's keys, such as ``s3.endpoint`` and
        ``s3.access-key-id``; by default as the storage's own tools do.
    :param fsync: when entries are made durable.
    :param fsync_seconds: the interval of :attr:`Fsync.INTERVAL`.
    :param segment_bytes: a segment of this size is sealed.
    :param segment_seconds: a segment of this age is sealed, if it has an entry.
    :raises UsageError: an argument is out of range.
    :raises LogError: a folder cannot be created.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        spool: str | PathLike[str] | None = None,
        storage: Mapping[str, str] | None = None,
        fsync: Fsync = Fsync.ALWAYS,
        fsync_seconds: float = 1.0,
        segment_bytes: int = SEGMENT_BYTES,
        segment_seconds: float = 10.0,
    ) -> None:
        if min(fsync_seconds, segment_seconds) <= 0 or segment_bytes <= 0:
            raise UsageError("the sizes and times of a log's writer are positive numbers")
        try:
            fsync = Fsync(fsync)
        except ValueError:
            known = ", ".join(f"`Fsync.{one.name}`" for one in Fsync)
            raise UsageError(f"{fsync!r} is no value of `fsync`", f"give one of {known}") from None
        self.folder: AnyPath = open_path(_path_text(folder, "folder"), storage)
        self._spool = _spool(self.folder, spool)
        self._fsync, self._fsync_seconds = fsync, fsync_seconds
        self._segment_bytes, self._segment_seconds = segment_bytes, segment_seconds
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._sync_lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._current: _Segment | None = None
        self._is_closed = False
        self._upload: SegmentUpload | None = None
        _create(self._spool, "log" if self._spool == self.folder else "spool")
        if isinstance(self.folder, StoragePath):
            _create(self.folder, "log")
            self._upload = SegmentUpload(self._spool, self.folder)
        self._timer = threading.Thread(target=self._run_timer, name="icemigrate-wal", daemon=True)
        self._timer.start()

    def append(
        self,
        tenant: str,
        kind: EntryKind,
        payload: bytes,
        *,
        time_ns: int | None = None,
        encoding: PayloadEncoding = PayloadEncoding.OTLP_JSON,
    ) -> None:
        """Append one entry.

        :param time_ns: when it was received, in nanoseconds since 1970 (UTC); by default now.
        :raises BadEntry: no segment can have such an entry; nothing was written.
        :raises LogError: the entry could not be written, or not be made durable.
        """
        received = time.time_ns() if time_ns is None else time_ns
        kind = read_member(EntryKind, kind, "a kind")
        encoding = read_member(PayloadEncoding, encoding, "an encoding")
        self.append_all([Entry(tenant, kind, received, payload, encoding)])

    def append_all(self, entries: Iterable[Entry]) -> None:
        """Append several entries, which are made durable together.

        :raises BadEntry: one of them is invalid; nothing was written.
        :raises LogError: they could not be written, or not be made durable.
        """
        listed = list(entries)
        for entry in listed:
            require_valid(entry)
        if not listed:
            return
        with self._lock:
            self._require_open()
            segment = self._writable()
            data = b"".join(segment.encoder.encode_entry(entry) for entry in listed)
            end = self._write(segment, data, len(listed))
        if self._fsync is Fsync.ALWAYS:
            self._sync(segment, end)
        if segment.end >= self._segment_bytes:
            with self._lock:
                if self._current is segment:
                    self._seal_current()

    def flush(self) -> None:
        """Seal the current segment, so that readers see all entries.

        :raises LogError: it could not be made durable, or not be uploaded; then the spool has it.
        """
        with self._lock:
            self._require_open()
            self._seal_current()
        if self._upload is not None:
            self._upload.finish()

    def close(self) -> None:
        """Seal the current segment and stop; a second call does nothing.

        :raises LogError: the segment could not be made durable, or not be uploaded; then the spool has it,
            and the next writer with this spool uploads it.
        """
        with self._lock:
            if self._is_closed or os.getpid() != self._process:
                return
            self._is_closed = True
            self._wake.notify()
            self._seal_current()
        if self._upload is not None:
            self._upload.stop()
            self._upload.finish()

    def __enter__(self) -> Writer:
        """The writer, which is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise UsageError(f"the writer of the log {self.folder} is closed", "make a new one")
        if os.getpid() != self._process:
            raise UsageError(
                f"the writer of the log {self.folder} belongs to another process",
                "make a writer in each process, after `fork()`",
            )

    def _writable(self) -> _Segment:
        """The current segment, or a new one with its header."""
        if self._current is None:
            try:
                opened = new_segment(self._spool)
            except OSError as error:
                raise self._failed("be written", error) from error
            self._current = _Segment(opened)
            self._write(self._current, self._current.encoder.header, 0)
            self._wake.notify()
        return self._current

    def _write(self, segment: _Segment, data: bytes, entries: int) -> int:
        """Write at the end of a segment; the new end.

        Bytes that an error left behind are overwritten by the next entry, and cut otherwise.
        """
        try:
            write_all(segment.opened.number, data, segment.end)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(segment.opened.number, segment.end)
            if not segment.end:
                segment.failure = error
                self._abandon(segment)
            raise self._failed("be written", error) from error
        segment.end += len(data)
        segment.entries += entries
        return segment.end

    def _sync(self, segment: _Segment, end: int) -> None:
        """Make a segment durable up to an offset, unless another thread just did."""
        with self._sync_lock:
            if segment.synced >= end:
                return
            reached, failure = segment.end, segment.failure
            if failure is None:
                try:
                    os.fsync(segment.opened.number)
                except OSError as error:
                    # What reached the disk is unknown now, and a second call would not show it.
                    segment.failure = failure = error
                else:
                    segment.synced = max(segment.synced, reached)
        if failure is not None:
            with self._lock:
                self._abandon(segment)
            raise self._failed("be made durable", failure) from failure

    def _abandon(self, segment: _Segment) -> None:
        """Leave a segment to :func:`~icemigrate.wal.log_folder.seal_abandoned`."""
        if self._current is segment:
            self._current = None
            with self._sync_lock:
                os.close(segment.opened.number)

    def _seal_current(self) -> None:
        segment, self._current = self._current, None
        if segment is None:
            return
        with self._sync_lock:
            try:
                if segment.entries:
                    footer = segment.encoder.encode_footer(segment.entries)
                    seal(segment.opened, footer, segment.end)
                else:
                    remove(segment.opened)
            except OSError as error:
                segment.failure = error
                raise self._failed("be sealed", error) from error
            segment.synced = segment.end
        if self._upload is not None:
            self._upload.start()

    def _run_timer(self) -> None:
        """Make entries durable, and seal segments, when their time has come."""
        step = min(self._segment_seconds, self._fsync_seconds) if self._fsync is Fsync.INTERVAL else None
        while True:
            with self._lock:
                if self._is_closed:
                    return
                segment = self._current
                if segment is None:
                    self._wake.wait()
                    continue
                remaining = segment.began + self._segment_seconds - time.monotonic()
                if remaining <= 0:
                    with suppress(LogError):
                        self._seal_current()
                    continue
                self._wake.wait(remaining if step is None else min(step, remaining))
                end = segment.end
            if step is not None and segment is self._current:
                with suppress(LogError):
                    self._sync(segment, end)

    def _failed(self, what: str, error: OSError) -> LogError:
        return LogError(
            f"the log {self.folder} cannot {what}: {os_error_reason(error)}",
            "check the free space, and the right to write there",
        )


def _path_text(path: object, what: str) -> str:
    """The text of a path.

    :raises UsageError: it is no path.
    """
    if not isinstance(path, (str, PathLike)) or not isinstance(text := os.fspath(path), str):
        raise UsageError(f"`{what}` is {path!r:.40}, which is no path", "give a text or a `pathlib.Path`")
    return text


def _create(folder: AnyPath, what: str) -> None:
    """Create a folder, unless it exists.

    :raises LogError: it cannot be created.
    """
    try:
        create_folder(folder)
    except FileExistsError:
        raise LogError(f"the {what} {folder} is not a folder", "give the path of a folder") from None
    except OSError as error:
        raise LogError(
            f"the {what} {folder} cannot be created: {os_error_reason(error)}",
            "check the path, the free space, and the right to write there",
        ) from None


def _spool(folder: AnyPath, spool: str | PathLike[str] | None) -> Path:
    """The local folder of open segments: the spool, or the log itself.

    :raises UsageError: a spool is given to a local log, or not given to a remote one.
    """
    if isinstance(folder, Path):
        if spool is not None:
            raise UsageError(f"the log {folder} is a local folder, and needs no spool", "give no `spool`")
        return folder
    if spool is None or not isinstance(path := open_path(_path_text(spool, "spool")), Path):
        raise UsageError(
            f"the log {folder} needs a local folder in which segments wait until they are uploaded",
            "give it as `spool`, on a disk that survives a restart",
        )
    return path


class _Segment:
    """The segment that a writer appends to.

    :ivar end: where the next entry begins, in bytes.
    :ivar synced: up to where it is durable.
    :ivar failure: why it cannot be made durable any more.
    """

    def __init__(self, opened: OpenSegment) -> None:
        self.opened, self.encoder = opened, SegmentEncoder()
        self.end = self.synced = self.entries = 0
        self.began = time.monotonic()
        self.failure: OSError | None = None
