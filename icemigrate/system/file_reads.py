"""Reads files: only regular ones, and those of a repository only inside it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from icemigrate.system.repository_boundary import open_folder, resolve_inside, user_path

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""Without ``O_NONBLOCK``, opening a named pipe waits for a process that writes to it."""


def open_inside(path: Path, top: Path) -> BinaryIO:
    """Open a file of a repository for reading.

    A link is followed as long as it stays within the repository.

    :param top: the root of the repository, see :func:`~icemigrate.system.repository_boundary.repository_top`.
    :raises OutsideRepository: the path leads out of the repository.
    :raises OSError: it cannot be opened, or is not a regular file.
    """
    real = resolve_inside(path, top)
    folder = open_folder(real.parent, top)
    try:
        return _regular(os.open(real.name, _READ | os.O_NOFOLLOW, dir_fd=folder), path)
    finally:
        os.close(folder)


class InsideFolder:
    """A folder of a repository that stays open, to read many of its files.

    :param folder: as it is written; it is resolved once.
    :param top: as in :func:`open_inside`.
    :raises OutsideRepository: the path leads out of the repository.
    :raises OSError: there is no such folder.
    """

    def __init__(self, folder: Path, top: Path) -> None:
        self._folder, self._top = folder, top
        self._number = open_folder(resolve_inside(folder, top), top)

    def __enter__(self) -> InsideFolder:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._number)

    def open_file(self, name: str) -> BinaryIO:
        """Open a file of the folder for reading; see :func:`open_inside`.

        :param name: without a separator, and not that of a folder of Git.
        :raises OutsideRepository: it is a link that leads out of the repository.
        :raises OSError: it cannot be opened, or is not a regular file.
        """
        path = self._folder / name
        try:
            number = os.open(name, _READ | os.O_NOFOLLOW, dir_fd=self._number)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            return open_inside(path, self._top)  # a link
        return _regular(number, path)


def open_regular(path: Path) -> BinaryIO:
    """Open a file that no repository names, such as one of the user's, for reading.

    :raises OSError: it cannot be opened, or is not a regular file.
    """
    return _regular(os.open(path, _READ), path)


def open_named(path: Path, *, may_be_pipe: bool = False) -> BinaryIO:
    """Open a file that the user named on the command line; see
    :func:`~icemigrate.system.repository_boundary.user_path`.

    :param may_be_pipe: whether to wait for a pipe of the user's, such as ``/dev/stdin`` or ``<(…)``.
    :raises OutsideRepository: the path is in the repository, and a link there leads out.
    :raises OSError: it cannot be opened, or is not a regular file.
    """
    absolute, top = user_path(path)
    if top is not None:
        return open_inside(absolute, top)
    return path.open("rb") if may_be_pipe else open_regular(path)


def list_names_inside(folder: Path, top: Path) -> list[str]:
    """The names in a folder of a repository, sorted.

    :raises OutsideRepository: the path leads out of the repository.
    :raises OSError: the folder cannot be listed.
    """
    return sorted(os.listdir(resolve_inside(folder, top)))  # noqa: PTH208 (names, no paths)


def _regular(number: int, path: Path) -> BinaryIO:
    stream = os.fdopen(number, "rb")
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return stream
    stream.close()
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))
