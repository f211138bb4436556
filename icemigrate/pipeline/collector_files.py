"""Files of the OpenTelemetry Collector's file exporter: which ones a source has, and how far they are read.

The exporter writes to one path.  With rotation it renames the file, with the time and perhaps a reason
before the suffix, and creates a new one: ``traces-2026-11-30T10-00-00.000-size.json``.  A file is known by
its folder and the number of its inode, which a rename keeps.  Without rotation a new process of the Collector
empties the file: then other bytes precede the position up to which it was read.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

from icemigrate.errors import os_error_reason
from icemigrate.frozen import Frozen, replace
from icemigrate.otlp.tenant_requests import TenantRule
from icemigrate.pipeline.collector_records import OpenFile, Position
from icemigrate.project.telemetry_sources import FileSource
from icemigrate.wal.log_folder import LogError

_ROTATED = r"(?P<rotated>-[0-9]{4}(?:-[0-9]{2}){2}T(?:[0-9]{2}-){2}[0-9]{2}\.[0-9]{3}(?:-[A-Za-z]+)?)?"
_COMPARED = 1024
"""How many bytes before a position show that it is of the same file."""


class CollectorFile(Frozen):
    """A file of a source.

    :param rule: of its requests.
    :param is_complete: whether it is rotated, so that the exporter has closed it.
    """

    path: Path
    rule: TenantRule
    is_complete: bool


class FileProgress(Frozen):
    """How far a file is read.

    :param checksum: CRC-32 of the last bytes before the position.
    :param seen: how often all files were searched for before the file was found last.
    """

    position: Position
    checksum: int
    seen: int


def source_files(source: FileSource) -> tuple[CollectorFile, ...]:
    """The files of a source, rotated ones first, the oldest first.

    :raises LogError: the folder cannot be read.
    """
    folder, _, name = source.path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    begin, end = (f"{folder}/{stem}", f"{dot}{suffix}") if dot else (source.path, "")
    pattern = re.compile(f"{_expression(begin)}{_ROTATED}{_expression(end)}", re.DOTALL)
    found = list[CollectorFile]()
    _require_readable(Path(source.path))
    for path in Path("/").glob(f"{_wildcard(begin)}*{_wildcard(end)}".lstrip("/")):
        if (match := pattern.fullmatch(str(path))) is None:
            continue
        rule = source.rule
        if source.has_tenant_in_path:
            rule = replace(rule, tenant=match["star"])
        found.append(CollectorFile(path, rule, match["rotated"] is not None))
    return tuple(sorted(found, key=lambda file: (not file.is_complete, str(file.path))))


def _require_readable(path: Path) -> None:
    """Check the folder of files, up to a ``*``: a search passes over one that it cannot read.

    :raises LogError: the folder cannot be read.
    """
    folder = next((one for one in reversed(path.parents) if "*" in one.name), path).parent
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise LogError(
            f"the folder {folder} cannot be read: {os_error_reason(error)}",
            "create it, or give the `path` of the exporter to `--from`",
        ) from error


def _expression(text: str) -> str:
    return re.escape(text).replace(r"\*", "(?P<star>[^/]+?)")


def _wildcard(text: str) -> str:
    return "*".join(glob.escape(part) for part in text.split("*"))


@contextmanager
def opened(file: CollectorFile) -> Iterator[OpenFile | None]:
    """A file for reading; ``None`` where it is no regular file, or was renamed or removed meanwhile.

    :raises LogError: it cannot be read.
    """
    try:
        number = os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise unreadable(file.path, error) from error
    try:
        status = os.fstat(number)
        time_ns = max(0, status.st_mtime_ns)
        stream = OpenFile(number, status.st_size, time_ns, file.is_complete)
        yield stream if stat.S_ISREG(status.st_mode) else None
    finally:
        os.close(number)


def unreadable(path: Path, error: OSError) -> LogError:
    """The error of a file that the Collector wrote."""
    return LogError(
        f"the file {path} cannot be read: {os_error_reason(error)}",
        "run the command as a user who can read the files of the Collector",
    )


def file_key(path: Path, file: OpenFile) -> str:
    """What identifies a file, also after it is renamed."""
    return f"{path.parent}:{os.fstat(file.number).st_ino}"


def position_in(file: OpenFile, progress: FileProgress | None) -> Position:
    """Where the unread part of a file begins: at its beginning, where the progress is of earlier content."""
    if progress is None or progress.position.offset > file.size:
        return Position()
    is_same = _checksum(file, progress.position) == progress.checksum
    return progress.position if is_same else Position()


def progress_at(file: OpenFile, position: Position, seen: int) -> FileProgress:
    """The progress that :func:`position_in` finds again."""
    return FileProgress(position, _checksum(file, position), seen)


def _checksum(file: OpenFile, position: Position) -> int:
    begin = max(0, position.offset - _COMPARED)
    return crc32(file.read(begin, position.offset - begin))
