"""This process and its child processes: debugging, program paths, garbage collection."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

DEBUG_VARIABLE = "ICEMIGRATE_DEBUG"


def is_debugging() -> bool:
    """Whether the variable is set, to anything but 0."""
    return os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


def user_name() -> str:
    """The name of the process's user; `unknown` where the system has none, as in some containers."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def search_path(environ: Mapping[str, str] | None = None, outside: Path | None = None) -> str:
    """The value of ``PATH`` without folders that a repository may fill.

    Relative folders are left out: they are searched in the working directory, which may be a repository with
    programs of its own.

    :param environ: the process environment; by default ``os.environ``.
    :param outside: a folder whose programs are left out too.
    """
    path = (os.environ if environ is None else environ).get("PATH", "")
    folders = [folder for folder in path.split(os.pathsep) if Path(folder).is_absolute()]
    if outside is not None:
        folders = [folder for folder in folders if not Path(folder).resolve().is_relative_to(outside)]
    return os.pathsep.join(folders)


def find_program(
    name: str, environ: Mapping[str, str] | None = None, outside: Path | None = None
) -> str | None:
    """The absolute path of a program in :func:`search_path`; ``None`` where there is none."""
    path = search_path(environ, outside)
    return shutil.which(name, path=path) if path else None


@contextlib.contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """A block without garbage collection: a hundred thousand frozen values contain no cycle, and it takes a
    third of the time.

    New objects count as old afterwards, so that the next collection of young objects skips them.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # Both move all objects from one list to another, whatever their number.
            gc.freeze()
            gc.unfreeze()
            gc.enable()
