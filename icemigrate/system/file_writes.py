"""Writes, renames and removes files: never through a link, and those of a repository only inside it; files of
tables where the catalog names them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from icemigrate.system.repository_boundary import (
    FOLDER_FLAGS,
    OutsideRepository,
    open_folder,
    resolve_inside,
    user_path,
)
from icemigrate.system.reserved_files import require_unreserved

_MOST_PARTS = 512
"""How many parts one call writes; Linux accepts 1024."""
_PART = 8 << 20
"""In bytes."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_inside(path: Path, data: bytes, top: Path) -> None:
    """Replace a file of a repository: a reader sees the old content or the new one.

    :param top: the root of the repository, see :func:`~icemigrate.system.repository_boundary.repository_top`.
    :raises OutsideRepository: the path leads out of the repository.
    :raises OSError: the path is a link or not a regular file, or cannot be written.
    """
    with _parent(path, top) as folder:
        _require_plain(path, folder)
        _replace(path.name, data, folder)


def create_inside(path: Path, data: bytes, top: Path) -> None:
    """Write a new file of a repository, and create its parent folders.

    :raises FileExistsError: it exists.
    :raises OutsideRepository: the path leads out of the repository.
    :raises OSError: it cannot be written.
    """
    make_folder_inside(path.parent, top)
    with _parent(path, top) as folder:
        number = os.open(path.name, _NEW, 0o666, dir_fd=folder)
        try:
            _write(number, data)
        except BaseException:
            with suppress(OSError):
                os.unlink(path.name, dir_fd=folder)
            raise


def make_folder_inside(folder: Path, top: Path) -> None:
    """Create a folder of a repository and its parents, unless they exist.

    :raises OutsideRepository: the path leads out of the repository.
    :raises OSError: it cannot be created.
    """
    real = resolve_inside(folder, top)
    at = os.open(top, FOLDER_FLAGS)
    try:
        for part in real.relative_to(top).parts:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=at)
            below = os.open(part, FOLDER_FLAGS, dir_fd=at)
            os.close(at)
            at = below
    finally:
        os.close(at)


def rename_inside(folder: Path, old: str, new: str, top: Path) -> None:
    """Rename a file within a folder of a repository.

    :raises FileExistsError: the new name is taken.
    :raises OSError: it cannot be renamed.
    """
    with _parent(folder / old, top) as number:
        # A hard link fails where the name is taken; a renaming would replace the other file.
        os.link(old, new, src_dir_fd=number, dst_dir_fd=number, follow_symlinks=False)
        os.unlink(old, dir_fd=number)


def remove_inside(path: Path, top: Path) -> None:
    """Remove a file of a repository, or the link that bears its name.

    :raises OutsideRepository: the path leads out of the repository.
    :raises OSError: it cannot be removed.
    """
    with _parent(path, top) as folder:
        os.unlink(path.name, dir_fd=folder)


def replace_named(path: Path, data: bytes) -> None:
    """Replace a file that the user named on the command line; see :func:`replacing_stream`.

    :raises OutsideRepository: the path is in the repository, and a link there leads out.
    :raises OSError: it cannot be written.
    """
    with replacing_stream(path) as stream:
        stream.write(data)


@contextmanager
def replacing_stream(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces a file that the user named on the command line.

    Within the repository of the working directory the path may not be a link (see
    :func:`~icemigrate.system.repository_boundary.user_path`).  Elsewhere a link stays one, and its target is
    written.  If the block raises, the old file stays and nothing of the new one is left.  A path that is not
    a file, such as a named pipe, is written to directly.

    :raises OutsideRepository: the path is in the repository, and a link there leads out.
    :raises ReservedFile: it is a file of the project.
    :raises OSError: it cannot be written.
    """
    require_unreserved(path)
    absolute, top = user_path(path)
    with ExitStack() as ends:
        target = Path(os.path.realpath(path))
        is_special = target.exists() and not target.is_file()
        if top is not None:
            target = absolute
            folder = ends.enter_context(_parent(absolute, top))
            is_special = _is_special(absolute, folder)
            if not is_special:
                _require_plain(absolute, folder)
        elif not is_special:
            folder = os.open(target.parent, FOLDER_FLAGS)
            ends.callback(os.close, folder)
        yield ends.enter_context(path.open("wb") if is_special else _replacement(target.name, folder))


def require_replaceable(path: Path) -> None:
    """Check that :func:`replacing_stream` can begin to write a file; nothing is changed.

    :raises OutsideRepository: the path is in the repository, and a link there leads out.
    :raises ReservedFile: it is a file of the project.
    :raises OSError: it cannot be written.
    """
    require_unreserved(path)
    absolute, top = user_path(path)
    target = Path(os.path.realpath(path)) if top is None else absolute
    is_special = target.exists() and not target.is_file()
    if top is not None:
        with _parent(absolute, top) as folder:
            is_special = _is_special(absolute, folder)
            if not is_special:
                _require_plain(absolute, folder)
    elif target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    written = target if is_special else target.parent
    if not is_special:
        os.close(os.open(written, FOLDER_FLAGS))
    if not os.access(written, os.W_OK):
        is_read_only = os.statvfs(written).f_flag & os.ST_RDONLY
        number = errno.EROFS if is_read_only else errno.EACCES
        raise OSError(number, os.strerror(number), str(path))


def create_durable(path: Path, *data: bytes) -> None:
    """Create a file of a table, with its missing folders; the disk has them when it returns.

    The catalog names the path, so links in its folders are followed, as readers of the table follow them.

    :param data: its content, one part after another.
    :raises FileExistsError: it exists, also as a link.
    :raises OSError: it cannot be written; no part of it is left.
    """
    make_durable_folder(path.parent)
    number = os.open(path, _NEW, 0o666)
    with _complete(path, number):
        _write_parts(number, data)


def link_durable(path: Path, source: Path) -> None:
    """Create a file of a table from a temporary file; see :func:`create_durable`.

    On one file system nothing is copied: both paths name the same file afterwards.

    :param source: complete; from now on, it may only be removed.
    :raises FileExistsError: the path exists, also as a link.
    :raises OSError: it cannot be written; no part of it is left.
    """
    make_durable_folder(path.parent)
    try:
        os.link(source, path, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # another file system, or one without hard links
        number = os.open(path, _NEW, 0o666)
        with _complete(path, number), source.open("rb") as stream:
            while part := stream.read(_PART):
                _write_parts(number, (part,))
        return
    with _complete(path, os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)):
        pass


@contextmanager
def _complete(path: Path, number: int) -> Iterator[None]:
    """Make a new file and its name durable at the end of the block; remove it where the block fails.

    :param number: of the open file; it is closed.
    """
    try:
        try:
            yield
            os.fsync(number)
        finally:
            os.close(number)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    sync_folder(path.parent)


def replace_durable(path: Path, data: bytes) -> None:
    """Replace a file of a log or a checkpoint, which one process at a time writes.

    A reader sees the old content or the new one, and the disk has it when the function returns.

    :raises OSError: it cannot be written.
    """
    new = path.with_suffix(".new")
    with new.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(path)
    sync_folder(path.parent)


def _write_parts(number: int, parts: Iterable[bytes]) -> None:
    waiting = deque(memoryview(part) for part in parts if part)
    while waiting:
        # One call for many parts; the system may write less than all of them.
        written = os.writev(number, tuple(islice(waiting, _MOST_PARTS)))
        while waiting and written >= len(waiting[0]):
            written -= len(waiting.popleft())
        if written:
            waiting[0] = waiting[0][written:]


def make_durable_folder(folder: Path) -> None:
    """Create a folder and its parents, unless they exist; the disk has them when it returns.

    :raises OSError: it cannot be created.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in reversed(missing):
        sync_folder(one.parent)


def delete_regular(path: Path) -> None:
    """Delete a file of a table, if it exists.

    :raises OSError: it cannot be deleted, or is a link, a folder or a device.
    """
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        path.unlink()
    except FileNotFoundError:
        return


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable.

    :raises OSError: the file system refuses.
    """
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def _parent(path: Path, top: Path) -> Iterator[int]:
    """A descriptor of a file's folder; a link to the folder may stay inside the repository."""
    if Path(os.path.realpath(path)) == top:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    folder = open_folder(resolve_inside(path.parent, top), top)
    try:
        yield folder
    finally:
        os.close(folder)


def _mode(name: str, folder: int) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _is_special(path: Path, folder: int) -> bool:
    """Whether it is a named pipe, a socket or a device."""
    mode = _mode(path.name, folder)
    return mode is not None and not any(kind(mode) for kind in (stat.S_ISREG, stat.S_ISLNK, stat.S_ISDIR))


def _require_plain(path: Path, folder: int) -> None:
    """Refuse to replace anything but a regular file.

    :raises OSError: it is a link, a folder or a device.
    """
    mode = _mode(path.name, folder)
    if mode is None or stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        raise OutsideRepository(errno.ELOOP, "it is a link, and links are not followed", str(path))
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def _replace(name: str, data: bytes, folder: int) -> None:
    with _replacement(name, folder) as stream:
        stream.write(data)


@contextmanager
def _replacement(name: str, folder: int) -> Iterator[BinaryIO]:
    """A file beside the named one, which gets its name at the end of the block.

    A link that appears meanwhile is replaced, not followed.
    """
    beside = f".{name}.{os.getpid()}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(beside, dir_fd=folder)
    number = os.open(beside, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(number, "wb") as stream:
            yield stream
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):  # on a read-only disk, removing even a missing file fails
            os.unlink(beside, dir_fd=folder)
        raise


def _write(number: int, data: bytes) -> None:
    with os.fdopen(number, "wb") as stream:
        stream.write(data)
