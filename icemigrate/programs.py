"""Where the programs are that this one starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


def search_path(environ: Mapping[str, str] | None = None, outside: Path | None = None) -> str:
    """The value of ``PATH`` without the folders that a repository may fill.

    Folders that are not absolute are left out: they are looked for in the working directory, which may be a
    repository that holds programs of its own.

    :param environ: the process environment; ``os.environ`` where left out.
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
