"""Where a repository ends, and which paths stay within it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

GIT_FOLDER = ".git"
FOLDER_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""Opens a folder without following a link; with ``O_PATH`` the folder need not be readable."""


class OutsideRepository(OSError):
    """A path leads out of the repository, or into the folder of Git's own files."""


def repository_top(folder: Path) -> Path:
    """The root of a folder's repository, without links in it.

    This is the nearest folder with ``.git``, which no commit can contain; a folder in no repository is its
    own root.

    :param folder: the folder of the project file.
    """
    here = Path(os.path.realpath(folder))
    return next((one for one in (here, *here.parents) if os.path.lexists(one / GIT_FOLDER)), here)


def resolve_inside(path: Path, top: Path) -> Path:
    """The real path of a file or folder of a repository, which need not exist.

    :param top: the root of the repository, without links in it.
    :raises OutsideRepository: the path leads out of the repository, into its ``.git``, or by a link to a
        hidden file.
    :raises OSError: the path cannot be resolved.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "a path cannot contain a NUL character", str(path))
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(top):
        raise OutsideRepository(errno.EPERM, "it leads out of the repository", str(path))
    within = real.relative_to(top).parts
    if any(part.lower() == GIT_FOLDER for part in within):
        raise OutsideRepository(errno.EPERM, "it leads into the folder `.git`", str(path))
    if any(_is_hidden(part) and part not in path.parts for part in within):
        # A working tree may contain uncommitted files such as `.env`.
        raise OutsideRepository(errno.EPERM, "it is a link that leads to a hidden file or folder", str(path))
    return real


def _is_hidden(name: str) -> bool:
    """Whether a name begins with a dot; Kubernetes mounts files over links to ``..data``."""
    return name.startswith(".") and not name.startswith("..")


def is_inside(path: Path, top: Path) -> bool:
    """Whether a path stays within a repository."""
    try:
        resolve_inside(path, top)
    except OSError:
        return False
    return True


def open_folder(folder: Path, top: Path) -> int:
    """A descriptor of a folder, opened step by step from the root, so that no link can be inserted meanwhile.

    :param folder: a real path, the result of :func:`resolve_inside`.
    :raises OSError: there is no such folder, or a part of the path has become a link.
    """
    if not folder.is_relative_to(top):
        # The parent of the root itself, which is no file.
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(top))
    number = os.open(top, FOLDER_FLAGS)
    try:
        for part in folder.relative_to(top).parts:
            below = os.open(part, FOLDER_FLAGS, dir_fd=number)
            os.close(number)
            number = below
    except BaseException:
        os.close(number)
        raise
    return number


def user_path(path: Path) -> tuple[Path, Path | None]:
    """A path that the user named on the command line, and the repository whose rules apply to it.

    A path outside the repository of the working directory is the user's own, and so are its links.  A path
    inside must stay inside: the repository may contain a link with that name.

    :returns: the absolute path, and the root of the repository; ``None`` where the path is the user's own.
    """
    here = Path.cwd()
    top = repository_top(here)
    absolute = Path(os.path.normpath(Path(os.path.realpath(here)) / path))
    return absolute, top if absolute.is_relative_to(top) else None
