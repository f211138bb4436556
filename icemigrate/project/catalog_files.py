"""A SQLite catalog without a project: its file, or a folder that has one or gets one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from icemigrate.catalog.sqlite_reader import catalog_names
from icemigrate.errors import UsageError
from icemigrate.project.environments import STATE_FOLDER
from icemigrate.project.project_reader import default_project
from icemigrate.project.project_values import CatalogDescription, Environment, Project

_FILE_NAME = "catalog.db"
_PROJECT_FILES = (".yaml", ".yml")
_NAME = "local"


def is_project_path(path: Path) -> bool:
    """Whether a path is that of a project: its file, or a folder with one or with migrations."""
    if path.suffix in _PROJECT_FILES:
        return True
    names = ("icemigrate.yaml", "icemigrate.yml", "migrations")
    return path.is_dir() and any((path / name).exists() for name in names)


def catalog_project(path: Path) -> Project:
    """A project without migrations for a SQLite catalog; the first change creates a missing file.

    :param path: of the file; or of a folder, whose catalog is ``.icemigrate/catalog.db`` or ``catalog.db``,
        and by default the first one.  The folder ``warehouse`` beside the file has the tables.
    :raises UsageError: the file has several catalogs.
    :raises CatalogError: the file cannot be read, or is no SQLite file.
    """
    path = path.expanduser().absolute()
    file = _file_of(path)
    names = catalog_names(file)
    if len(names) > 1:
        raise UsageError(
            f"{path} has several catalogs: {', '.join(f'`{name}`' for name in names)}",
            "write a project file with an environment for one of them, and pass its folder",
        )
    name = names[0] if names else _NAME
    catalog = CatalogDescription(name, "sqlite", str(file), str(file.parent / "warehouse"))
    project = default_project(file.parent.parent if file.parent.name == STATE_FOLDER else file.parent)
    return dataclasses.replace(
        project, environments={_NAME: Environment(_NAME, catalog)}, default_environment=_NAME
    )


def _file_of(path: Path) -> Path:
    is_new = not path.exists() and not path.suffix
    if not (path.is_dir() or is_new):
        return path
    beside = path / _FILE_NAME
    return beside if beside.exists() else path / STATE_FOLDER / _FILE_NAME
