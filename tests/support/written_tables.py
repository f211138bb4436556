"""Tables without Java whose rows tests write and read, in one project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from icemigrate.iceberg.names import TableName
from icemigrate.table_data.new_table import create_declared, table_from_yaml
from icemigrate.table_data.table_session import TableSession
from tests.support.table_project import TableProject

_numbers = count(1)


class WrittenTables:
    """A project with tables that no migration declares.

    :ivar folder: for files of a test.
    """

    def __init__(self, project: TableProject, folder: Path, session: TableSession) -> None:
        self.project, self.folder, self.session = project, folder, session

    def create(self, text: str) -> str:
        """A new table of the keys of a migration's entry; its name."""
        name = f"sales.t{next(_numbers)}"
        declared = TableName.parse(name)
        create_declared(self.session, declared, table_from_yaml(declared, text, "t.yaml"))
        return name

    def file(self, name: str, content: str | bytes) -> str:
        """A new file of the test; its path."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def static(self, name: str) -> StaticTable:
        """The table as PyIceberg reads it."""
        return StaticTable.from_metadata(self.session.load(name).stored.location)

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """The rows that PyIceberg reads, sorted by their text."""
        found = self.static(name).scan().to_arrow().to_pylist()
        return sorted((tuple(row[c] for c in columns or row) for row in found), key=str)

    def data_files(self, name: str) -> set[Path]:
        """The Parquet files in the table's folder, whether a snapshot has them or not."""
        location = self.session.load(name).metadata["location"].removeprefix("file://")
        return set(Path(location).rglob("*.parquet"))

    def snapshots(self, name: str) -> list[dict[str, Any]]:
        """The snapshots of the metadata."""
        found: list[dict[str, Any]] = self.session.load(name).metadata["snapshots"]
        return found


@contextmanager
def _opened(folder: Path) -> Iterator[WrittenTables]:
    project = TableProject.create(folder)
    with project.tables() as session:
        session.store.create_namespace(("sales",))
        yield WrittenTables(project, folder, session)


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WrittenTables]:
    with _opened(tmp_path_factory.mktemp("written")) as found:
        yield found


@pytest.fixture
def written(_shared: WrittenTables, tmp_path: Path) -> WrittenTables:
    """The tables of a test file, with a folder for one test."""
    return WrittenTables(_shared.project, tmp_path, _shared.session)
