"""The DuckDB that reads a load's data and writes its Parquet files: in memory, with a temporary folder.

It opens the files that the user names.  Where a user's expressions run, it is locked first
(:func:`~icemigrate.table_data.row_readers.stored_rows`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from icemigrate.frozen import Frozen
from icemigrate.table_data.duckdb_session import open_duckdb, run_query, statement_share


class LoadDatabase(Frozen):
    """A database of one command.

    :param connection: of DuckDB.
    :param folder: for files of the command; removed with the database.
    """

    connection: Any
    folder: Path

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, as Python values; times with a zone have to be numbers or texts."""
        found: list[tuple[Any, ...]] = run_query(
            self.connection, lambda: self.connection.execute(sql).fetchall()
        )
        return found

    def share(self) -> float | None:
        """See :func:`~icemigrate.table_data.duckdb_session.statement_share`."""
        return statement_share(self.connection)

    def run(self, sql: str) -> None:
        """Run a statement, once: a second run of one that writes files would find those of the first."""
        self.connection.execute(sql)

    def temporary_file(self, ending: str, content: bytes) -> Path:
        """A new file of the folder."""
        path = self.folder / f"{uuid4().hex}{ending}"
        path.write_bytes(content)
        return path

    def types(self, relation: str) -> dict[str, str]:
        """The columns of a relation, with their types.

        :param relation: a table, or a table function, in SQL.
        """
        return {name: type_ for name, type_, *_ in self.query(f"DESCRIBE SELECT * FROM {relation}")}


@contextmanager
def open_load_database() -> Iterator[LoadDatabase]:
    """Open a database, until the block ends.

    It reads times without a zone as UTC, and downloads nothing.

    :raises MissingExtra: DuckDB is not installed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="icemigrate-") as folder,
        open_duckdb(Path(folder) / "spilled") as connection,
    ):
        yield LoadDatabase(connection, Path(folder).resolve())
