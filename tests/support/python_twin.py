"""The same project on a copy of its SQLite catalog, where Python commits the metadata instead of Spark."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

from icemigrate import Project
from tests.support.comparable_metadata import comparable_metadata, differences
from tests.support.spark_project import OwnProject

_ENVIRONMENT = "python"


class PythonTwin:
    """A copy of the catalog as it is now.  Commits there write files of their own beside those of Spark."""

    def __init__(self, original: OwnProject) -> None:
        self._original, self._database = original, original.folder / "twin.db"
        self._database.unlink(missing_ok=True)
        _copy(_database_of(original), self._database)
        with closing(sqlite3.connect(self._database)) as rows, rows:
            for location in _locations(rows).values():
                rows.execute(
                    "UPDATE iceberg_tables SET metadata_location = ? WHERE metadata_location = ?",
                    (_copied_file(location), location),
                )
        file = original.folder / "icemigrate.yaml"
        text = file.read_text(encoding="utf-8")
        if f"  {_ENVIRONMENT}:" not in text:
            (line,) = (one for one in text.splitlines() if one.startswith("  local: "))
            place = (
                f"uri: 'sqlite:///{self._database}', warehouse: '{original.environment.catalog.warehouse}'"
            )
            line = line.replace("local: {", f"{_ENVIRONMENT}: {{apply_with: auto, ")
            line = line.replace("type: sqlite,", f"type: sqlite, {place},")
            file.write_text(text.replace("environments:\n", f"environments:\n{line}\n"), encoding="utf-8")
        self.project = Project(original.folder, environment=_ENVIRONMENT)

    def differences(self) -> list[str]:
        """Where the tables of this catalog differ from the original, uuids, times and file names left out."""
        return differences(_tables(self._database), _tables(_database_of(self._original)))

    def replace_original(self) -> None:
        """Let the project go on with what Python committed."""
        _copy(self._database, _database_of(self._original))


def _copied_file(location: str) -> str:
    """The location of a copy: a later commit of the original may delete the file."""
    folder, _, name = location.rpartition("/")
    number, _, _ = name.partition("-")
    copied = f"{folder}/{number}-{uuid4()}{name[name.index('.') :]}"
    shutil.copyfile(_path(location), _path(copied))
    return copied


def _path(location: str) -> Path:
    return Path(location.removeprefix("file:").replace("//", "/"))


def _copy(database: Path, target: Path) -> None:
    with closing(sqlite3.connect(database)) as rows, closing(sqlite3.connect(target)) as copy:
        rows.backup(copy)


def _database_of(project: OwnProject) -> Path:
    database = project.folder / ".icemigrate" / "catalog.db"
    database.parent.mkdir(exist_ok=True)
    return database


def _locations(rows: sqlite3.Connection) -> dict[str, str]:
    """The metadata file of each table; none in a new database."""
    if rows.execute("SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'").fetchone() is None:
        return {}
    query = "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables"
    return dict(rows.execute(query).fetchall())


def _tables(database: Path) -> Mapping[str, Any]:
    """The metadata of every table but the history, by name."""
    with closing(sqlite3.connect(database)) as rows:
        found = _locations(rows)
    return {
        name: comparable_metadata(json.loads(_content(location)))
        for name, location in found.items()
        if not name.startswith("icemigrate.")
    }


def _content(location: str) -> bytes:
    content = _path(location).read_bytes()
    return gzip.decompress(content) if ".gz." in location else content
