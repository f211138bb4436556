"""Where the programs are that this one starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


def find_program(
    name: str, environ: Mapping[str, str] | None = None, outside: Path | None = None
) -> str | None:
    """The absolute path of a program on ``PATH``; ``None`` where there is none.

    Folders on ``PATH`` that are not absolute are left out: they are looked for in the working directory,
    which may be a repository that holds a program of the same name.

    :param environ: the process environment; ``os.environ`` where left out.
    :param outside: a folder that the program may not lie in.
    """
    path = (os.environ if environ is None else environ).get("PATH", "")
    folders = [folder for folder in path.split(os.pathsep) if Path(folder).is_absolute()]
    if outside is not None:
        folders = [folder for folder in folders if not Path(folder).resolve().is_relative_to(outside)]
    return shutil.which(name, path=os.pathsep.join(folders)) if folders else None
