"""The folder of a log: names of segments, and how they are sealed.

A writer has a segment open under a name that ends in ``.open``, with a lock of the operating system on it.  A
sealed segment never changes, and readers read no other one.  On a remote storage, all segments are sealed.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from icemigrate.errors import IcemigrateError, os_error_reason
from icemigrate.frozen import Frozen
from icemigrate.system.file_writes import sync_folder
from icemigrate.wal.entries import Entry, UnreadableBytes
from icemigrate.wal.segment_format import HEADER_SIZE, TORN, SegmentEncoder, decode_segment
from icemigrate.wal.storage_path import AnyPath, StoragePath

SEALED, OPEN = ".wal", ".wal.open"
SEGMENT_BYTES = 64 * 1024 * 1024
"""The payloads of a segment, unless a writer chooses another size."""


_OF_LOGS = frozenset({"checkpoint", "collector", "deferred", "lock"})
"""Folders that `ingest` creates in a log."""
_OF_VOLUMES = frozenset({"lost+found"})
"""What a new volume has."""


class LogError(IcemigrateError):
    """The folder or a segment of a log cannot be read or written."""


class OpenSegment(Frozen):
    """A segment that a writer of this process has open and locked.

    :param number: of the file in this process.
    """

    path: Path
    number: int


class SegmentFile(Frozen):
    """A sealed segment.

    :param size: in bytes.
    :param sealed_s: when it was sealed, in seconds since 1970.
    """

    path: AnyPath
    size: int
    sealed_s: float


def new_segment(folder: Path) -> OpenSegment:
    """Create an empty segment, locked for this process; names sort by the time of creation.

    :raises OSError: the folder cannot be written.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        path = folder / f"{time.time_ns() // 1_000_000:013}-{uuid4().hex}{OPEN}"
        number = os.open(path, flags, 0o640)
        with suppress(BlockingIOError):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, number):
                sync_folder(folder)
                return OpenSegment(path, number)
        # A reader took the new file for one that its writer had left, before it was locked.
        os.close(number)


def require_log(folder: AnyPath) -> None:
    """Check that a folder that has files is a log; a folder that is missing is reported where it is read.

    :raises LogError: it has neither segments nor what a run leaves in a log.
    """
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError:
        return
    names = {name for name in names if not name.startswith(".") and name not in _OF_VOLUMES}
    if names and not any(name.endswith((SEALED, OPEN)) or name in _OF_LOGS for name in names):
        raise LogError(
            f"the folder {folder} is no log: it has other files, such as `{min(names)}`, and no segments",
            "give the folder to which `icemigrate.wal.Writer` writes",
        )


def create_folder(folder: AnyPath) -> None:
    """Create the folder of a log with its parents, unless it exists.

    :raises OSError: it cannot be created.
    """
    folder.mkdir(parents=True, exist_ok=True)


def remove(segment: OpenSegment) -> None:
    """Close and remove a segment that has no entry.

    :raises OSError: it cannot be removed; the file is closed all the same.
    """
    try:
        segment.path.unlink()
    finally:
        os.close(segment.number)


def seal(segment: OpenSegment, footer: bytes, end: int, path: Path | None = None) -> Path:
    """Write the footer of a segment, give it the name of a sealed one, and close it.

    :param end: where its last entry ends, in bytes.
    :param path: its new name; by default the one that it has, with the suffix of a sealed one.
    :raises OSError: it cannot be written or renamed; the file is closed all the same.
    """
    sealed = path or segment.path.with_name(segment.path.name.removesuffix(OPEN) + SEALED)
    try:
        write_all(segment.number, footer, end)
        os.fsync(segment.number)
        segment.path.rename(sealed)
        sync_folder(segment.path.parent)
    finally:
        os.close(segment.number)
    return sealed


def sealed_segments(folder: AnyPath) -> tuple[AnyPath, ...]:
    """The sealed segments, the oldest first; files of other names are none.

    :raises LogError: the folder cannot be read.
    """
    return tuple(one.path for one in sealed_files(folder))


def sealed_files(folder: AnyPath) -> tuple[SegmentFile, ...]:
    """As :func:`sealed_segments`, with sizes and times.

    :raises LogError: the folder cannot be read.
    """
    found = list[SegmentFile]()
    if isinstance(folder, StoragePath):
        try:
            for one in folder.files():
                if one.path.name.endswith(SEALED):
                    found.append(SegmentFile(one.path, one.size, one.modified_s))
        except OSError as error:
            raise unreadable_log(folder, error) from error
    else:
        for path in _files(folder, SEALED):
            with suppress(FileNotFoundError):  # another program removed it
                status = path.stat()
                found.append(SegmentFile(path, status.st_size, status.st_mtime))
    return tuple(sorted(found, key=lambda one: one.path.name))


def open_segments(folder: AnyPath) -> tuple[Path, ...]:
    """The segments that are not sealed, the oldest first; their last entry can be incomplete.

    :raises LogError: the folder cannot be read.
    """
    return () if isinstance(folder, StoragePath) else tuple(sorted(_files(folder, OPEN)))


def read_segment(path: AnyPath) -> bytes:
    """The bytes of a segment, under the name that it has now; none of one that is removed meanwhile.

    :raises LogError: it cannot be read.
    """
    for name in (path, path.with_name(path.name.removesuffix(OPEN) + SEALED)):
        try:
            return name.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise LogError(
                f"the segment {name} cannot be read: {os_error_reason(error)}",
                "run the command as a user who can read the log",
            ) from error
    return b""


def open_sealed(path: Path) -> int:
    """The descriptor of a sealed segment, from which the caller reads, and which it closes.

    :raises OSError: it cannot be opened, or is a link.
    """
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def write_sealed(path: AnyPath, entries: Iterable[Entry | UnreadableBytes]) -> None:
    """Write a sealed segment, which replaces one of the same name; without an entry there is none.

    :param entries: on a remote storage, as many as the memory takes.
    :raises LogError: it cannot be written.
    """
    encoder = SegmentEncoder()
    if isinstance(path, StoragePath):
        parts = [_encoded(encoder, entry) for entry in entries]
        if parts:
            upload_segment(b"".join((encoder.header, *parts, encoder.encode_footer(len(parts)))), path)
        return
    try:
        opened = new_segment(path.parent)
        end, count = len(encoder.header), 0
        try:
            write_all(opened.number, encoder.header, 0)
            for entry in entries:
                data = _encoded(encoder, entry)
                write_all(opened.number, data, end)
                end, count = end + len(data), count + 1
        except BaseException:
            os.close(opened.number)  # which ends its lock: `remove_abandoned` removes it
            raise
        if count:
            seal(opened, encoder.encode_footer(count), end, path)
        else:
            remove(opened)
    except OSError as error:
        raise _unusable(path, error) from error


def _encoded(encoder: SegmentEncoder, entry: Entry | UnreadableBytes) -> bytes:
    return encoder.encode_entry(entry) if isinstance(entry, Entry) else encoder.encode_unreadable(entry)


def upload_segment(content: bytes, path: StoragePath) -> None:
    """Write a sealed segment to a remote storage, where it replaces one of the same name.

    :raises LogError: it cannot be written.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        raise _unusable(path, error) from error


def move_segment(path: AnyPath, new: AnyPath) -> None:
    """Give a sealed segment another name, in a folder of the same file system, and the time of now.

    The retention of a segment begins with that time.  On a remote storage,
    a process that ends meanwhile may leave the segment under both names.

    :raises LogError: it cannot be moved.
    """
    try:
        if isinstance(path, StoragePath) and isinstance(new, StoragePath):
            path.rename(new)
        elif isinstance(path, Path) and isinstance(new, Path):
            os.utime(path)
            path.rename(new)
            sync_folder(new.parent)
    except OSError as error:
        raise _unusable(path, error) from error


def remove_segment(path: AnyPath) -> None:
    """Remove a sealed segment, if it exists.

    :raises LogError: it cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _unusable(path, error) from error


def seal_abandoned(folder: AnyPath) -> tuple[Path, ...]:
    """Seal the segments of writers that ended without closing them, such as killed ones.

    A torn entry at the end is cut, and a segment without an entry is removed.  It is called before reading;
    segments of running writers stay open.

    :return: the segments that are sealed now.
    :raises LogError: a segment cannot be read or written.
    """
    found = (_seal_abandoned(path) for path in open_segments(folder))
    return tuple(one for one in found if one is not None)


def remove_abandoned(folder: AnyPath) -> None:
    """Remove the open segments of processes that ended, where all of their entries are elsewhere, too.

    :raises LogError: a segment cannot be removed.
    """
    for path in open_segments(folder):
        if (number := _lock_abandoned(path)) is not None:
            try:
                remove_segment(path)
            finally:
                os.close(number)


def _files(folder: Path, suffix: str) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(suffix) and entry.is_file(follow_symlinks=False):
                    yield folder / entry.name
    except OSError as error:
        raise unreadable_log(folder, error) from error


def unreadable_log(folder: AnyPath, error: OSError) -> LogError:
    """The error of a folder that cannot be listed."""
    return LogError(
        f"the log {folder} cannot be read: {os_error_reason(error)}", "give the folder of the segments"
    )


def _seal_abandoned(path: Path) -> Path | None:
    """Seal one segment; ``None`` where its writer runs, it has no entry, or another process was faster."""
    if (number := _lock_abandoned(path)) is None:
        return None
    try:
        return _close_segment(path, number)
    except OSError as error:
        with suppress(OSError):
            os.close(number)
        raise _unusable(path, error) from error


def _lock_abandoned(path: Path) -> int | None:
    """The number of an open segment whose writer ended, locked for this process; ``None`` for others."""
    try:
        number = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(path, number):
            return number
    except BlockingIOError:
        pass
    except OSError as error:
        os.close(number)
        raise _unusable(path, error) from error
    os.close(number)
    return None


def _is_at(path: Path, number: int) -> bool:
    """Whether an open file still has its name: its writer may have sealed it before the lock was taken."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(number))
    return False


def _close_segment(path: Path, number: int) -> Path | None:
    """Seal a segment that its writer left; only half an entry at its end is cut.

    Damaged bytes stay: readers report them.  ``None`` where it has no entry and is removed.
    """
    with os.fdopen(os.dup(number), "rb") as stream:
        data = stream.read()
    segment, content = OpenSegment(path, number), decode_segment(data)
    torn = content.damaged[-1] if content.damaged and content.damaged[-1].reason == TORN else None
    end = len(data) if torn is None else torn.offset
    if end <= HEADER_SIZE:
        remove(segment)
        return None
    os.ftruncate(number, end)
    footer = b""
    if content.end and not content.is_sealed:
        footer = SegmentEncoder(data[:HEADER_SIZE]).encode_footer(len(content.entries))
    return seal(segment, footer, end)


def write_all(number: int, data: bytes, offset: int) -> None:
    """Write bytes at an offset of a file.

    :raises OSError: not all of them could be written.
    """
    view = memoryview(data)
    while view:
        written = os.pwrite(number, view, offset)
        view, offset = view[written:], offset + written


def _unusable(path: AnyPath, error: OSError) -> LogError:
    return LogError(
        f"the segment {path} cannot be written: {os_error_reason(error)}",
        "check the right to write there",
    )
