"""Files of the OpenTelemetry Collector's file exporter: which ones a source has, and how far they are read.

The exporter writes to one path.  With rotation it renames the file, with the time and perhaps a reason
before the suffix, and creates a new one: ``traces-2026-11-30T10-00-00.000-size.json``.  A file is known by
its folder and the number of its inode, which a rename keeps.  Without rotation a new process of the Collector
empties the file: then other bytes precede the position up to which it was read.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator
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
    :param tenants_folder: the folder above the part of the path that is the tenant's id; no link below it is
        followed, because a link can lead to another tenant.  ``None`` where the path has no id.
    """

    path: Path
    rule: TenantRule
    is_complete: bool
    tenants_folder: Path | None = None


class FileProgress(Frozen):
    """How far a file is read.

    :param checksum: CRC-32 of the last bytes before the position.
    :param missing_since_s: when a search of its folder missed the file first, in seconds since 1970; ``None``
        where the last search found it.
    """

    position: Position
    checksum: int
    missing_since_s: float | None = None


def source_files(source: FileSource) -> tuple[CollectorFile, ...]:
    """The files of a source, rotated ones first, the oldest first.

    :raises LogError: the folder cannot be read.
    """
    folder, _, name = source.path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    begin, end = (f"{folder}/{stem}", f"{dot}{suffix}") if dot else (source.path, "")
    pattern = re.compile(f"{_expression(begin)}{_ROTATED}{_expression(end)}", re.DOTALL)
    found = list[CollectorFile]()
    above = _require_readable(Path(source.path))
    # `**` is any number of folders.
    wildcard = f"{_wildcard(begin)}*{_wildcard(end)}".replace("**", "*")
    for path in Path("/").glob(wildcard.lstrip("/")):
        if (match := pattern.fullmatch(str(path))) is None:
            continue
        rule, tenants_folder = source.rule, None
        if source.has_tenant_in_path:
            rule, tenants_folder = replace(rule, tenant=match["star"]), above
        found.append(CollectorFile(path, rule, match["rotated"] is not None, tenants_folder))
    return tuple(sorted(found, key=lambda file: (not file.is_complete, str(file.path))))


def present_keys(folder: str, sources: Iterable[FileSource]) -> frozenset[str] | None:
    """What identifies the files that are in a folder, under any name.

    :returns: ``None`` where no source searches the folder, or it cannot be listed now.
    """
    patterns = (_expression(source.path.rpartition("/")[0]) for source in sources)
    if not any(re.fullmatch(pattern, folder, re.DOTALL) for pattern in patterns):
        return None
    try:
        with os.scandir(folder) as entries:
            return frozenset(_key(Path(folder), entry.stat()) for entry in entries)
    except OSError:
        return None


def _require_readable(path: Path) -> Path:
    """The folder of files, up to a ``*``: a search passes over one that it cannot read.

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
    return folder


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
        number = _open(file)
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


def _open(file: CollectorFile) -> int:
    """Open a file for reading.

    :raises LogError: the tenant's id is in the path, and a part of the path from there on is a link.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if (above := file.tenants_folder) is None:
        return os.open(file.path, flags)
    *folders, name = file.path.relative_to(above).parts
    opened_folders = [os.open(above, flags | os.O_DIRECTORY)]
    try:
        for folder in folders:
            number = os.open(folder, flags | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened_folders[-1])
            opened_folders.append(number)
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=opened_folders[-1])
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise LogError(
            f"the file {file.path} is not read: a symbolic link can lead to the file of another tenant",
            f"replace the link below {above} with the folder or the file",
        ) from error
    finally:
        for number in opened_folders:
            os.close(number)


def unreadable(path: Path, error: OSError) -> LogError:
    """The error of a file that the Collector wrote."""
    return LogError(
        f"the file {path} cannot be read: {os_error_reason(error)}",
        "run the command as a user who can read the files of the Collector",
    )


def file_key(path: Path, file: OpenFile) -> str:
    """What identifies a file, also after it is renamed."""
    return _key(path.parent, os.fstat(file.number))


def _key(folder: Path, status: os.stat_result) -> str:
    return f"{folder}:{status.st_ino}"


def folder_of(key: str) -> str:
    """The folder of a file that a key identifies."""
    return key.rpartition(":")[0]


def position_in(file: OpenFile, progress: FileProgress | None) -> Position:
    """Where the unread part of a file begins: at its beginning, where the progress is of earlier content."""
    if progress is None or progress.position.offset > file.size:
        return Position()
    is_same = _checksum(file, progress.position) == progress.checksum
    return progress.position if is_same else Position()


def progress_at(file: OpenFile, position: Position) -> FileProgress:
    """The progress that :func:`position_in` finds again."""
    return FileProgress(position, _checksum(file, position))


def _checksum(file: OpenFile, position: Position) -> int:
    begin = max(0, position.offset - _COMPARED)
    return crc32(file.read(begin, position.offset - begin))
