"""Where a repository ends, and which paths stay within it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

GIT_FOLDER = ".git"
FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""Opens a folder, which need not be readable where the system has ``O_PATH``, and no link."""


class OutsideRepository(OSError):
    """A path leads out of the repository, or into the folder in which Git keeps its own files."""


def repository_top(folder: Path) -> Path:
    """The top of the repository that a folder belongs to, without links in it.

    This is the nearest folder that holds ``.git``, which no commit can contain; a folder in no repository
    is its own top.

    :param folder: the folder of the project file.
    """
    here = Path(os.path.realpath(folder))
    return next((one for one in (here, *here.parents) if os.path.lexists(one / GIT_FOLDER)), here)


def resolved(path: Path, top: Path) -> Path:
    """The real path of a file or folder of a repository, which need not exist.

    :param top: the top of the repository, without links in it.
    :raises OutsideRepository: the path leads out of the repository, into its ``.git``, or by a link to what
        is hidden there.
    :raises OSError: the path cannot be resolved.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "a path has no NUL character", str(path))
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(top):
        raise OutsideRepository(errno.EPERM, "it leads out of the repository", str(path))
    within = real.relative_to(top).parts
    if any(part.lower() == GIT_FOLDER for part in within):
        raise OutsideRepository(errno.EPERM, "it leads into the folder `.git`", str(path))
    if any(_is_hidden(part) and part not in path.parts for part in within):
        # A working tree may hold `.env` and such, which no commit has.
        raise OutsideRepository(errno.EPERM, "it is a link that leads to a hidden file or folder", str(path))
    return real


def _is_hidden(name: str) -> bool:
    """Whether a name begins with a dot; Kubernetes mounts files over links to ``..data``."""
    return name.startswith(".") and not name.startswith("..")


def is_inside(path: Path, top: Path) -> bool:
    """Whether a path stays within a repository."""
    try:
        resolved(path, top)
    except OSError:
        return False
    return True


def open_folder(folder: Path, top: Path) -> int:
    """A descriptor of a folder, reached from the top step by step, so that no link can be slipped in.

    :param folder: a real path, as :func:`resolved` gives it.
    :raises OSError: there is no such folder, or a part of the path has become a link.
    """
    number = os.open(top, FOLDER)
    try:
        for part in folder.relative_to(top).parts:
            below = os.open(part, FOLDER, dir_fd=number)
            os.close(number)
            number = below
    except BaseException:
        os.close(number)
        raise
    return number


def user_path(path: Path) -> tuple[Path, Path | None]:
    """A path that the user named on the command line, and the repository whose rules hold for it.

    A path outside of the repository of the working directory is the user's own, and so are its links.  A path
    inside has to stay inside: the repository may hold a link of that name.

    :returns: the absolute path, and the top of the repository; ``None`` where the path is the user's own.
    """
    here = Path.cwd()
    top = repository_top(here)
    absolute = Path(os.path.normpath(Path(os.path.realpath(here)) / path))
    return absolute, top if absolute.is_relative_to(top) else None
