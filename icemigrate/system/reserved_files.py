"""Files of a project that no output of a command replaces: its declarations, its catalog and its tables."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_NAMES = frozenset({"icemigrate.yaml", "icemigrate.lock"})
_STATE_FOLDER = ".icemigrate"
_DECLARATIONS = (".yaml", ".yml")

_migrations: set[Path] = set()
_state: set[Path] = set()


class ReservedFile(OSError):
    """An output would replace a file of the project."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EPERM, "it is a file of the project", str(path))


def reserve_project_files(migrations: Path, state: tuple[Path, ...]) -> None:
    """Reserve the files of a project that this process opened, until the process ends.

    :param migrations: the folder of the migration files.
    :param state: files of catalogs, and folders of tables.
    """
    _migrations.add(_real(migrations))
    _state.update(map(_real, state))


def require_unreserved(path: Path) -> None:
    """Check that a path that the user named is no existing file of a project.

    Some are known by their names: an output can be written before a project is opened.

    :raises ReservedFile: it is one, also by another name.
    """
    real = _real(path)
    if not real.is_file():
        return
    is_declaration = real.suffix in _DECLARATIONS and any(map(real.is_relative_to, _migrations))
    is_state = _STATE_FOLDER in real.parts or any(map(real.is_relative_to, _state))
    if real.name in _NAMES or is_declaration or is_state:
        raise ReservedFile(path)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
