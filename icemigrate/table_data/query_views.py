"""The tables of a query as views in DuckDB, which afterwards reads no other file."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.catalog.metadata_files import local_path
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table_properties import ADOPTED_FROM
from icemigrate.iceberg.types import Field, Primitive, walk_fields
from icemigrate.table_data.duckdb_problems import report_problems
from icemigrate.table_data.duckdb_scans import (
    ScannedFiles,
    require_manifests,
    scanned_files,
    table_folders,
)
from icemigrate.table_data.duckdb_session import (
    load_iceberg,
    lock_duckdb,
    quoted_identifier,
    text_literal,
)
from icemigrate.table_data.object_storage import ObjectStorage
from icemigrate.table_data.query_errors import duckdb_errors
from icemigrate.table_data.query_metadata import PointMetadata
from icemigrate.table_data.query_readers import ReaderChoice, ReaderKind, reader_without_duckdb
from icemigrate.table_data.query_scans import scan_to_arrow
from icemigrate.table_data.table_points import ResolvedPoint
from icemigrate.table_data.table_session import CurrentTable, TableSession

if TYPE_CHECKING:
    import duckdb


class TableRead(Frozen):
    """A table that a query reads.

    :param table: as the catalog has it.
    :param point: the snapshot and the schema.
    :param metadata: of that state.
    :param reader: what reads it, and why.
    :param view: its name in DuckDB.
    :param manifests: that DuckDB reads.
    """

    table: CurrentTable
    point: ResolvedPoint
    metadata: PointMetadata
    reader: ReaderChoice
    view: str
    manifests: tuple[str, ...] = ()

    @property
    def declared(self) -> str:
        """The table's name in migration files."""
        return str(self.table.declared)


def create_views(
    session: TableSession,
    connection: duckdb.DuckDBPyConnection,
    reads: Sequence[TableRead],
    scratch: Path,
    files: Sequence[Collection[str] | None] = (),
) -> tuple[TableRead, ...]:
    """Create the views, and lock DuckDB; the tables with the reader that each has.

    :param scratch: a folder for files of the query.
    :param files: for each table, the data files whose rows are wanted; ``None`` for all.  PyIceberg's scan
        gives the rows of the other files too.
    :raises IcemigrateError: a table cannot be read.
    """
    by_duckdb = [read for read in reads if read.reader.kind is ReaderKind.DUCKDB]
    storage = session.object_storage if any(map(_is_remote, by_duckdb)) else None
    if by_duckdb:
        load_iceberg(connection, None if storage is None else storage.statement)
    outside: list[str] = []
    used = []
    for read, wanted in zip(reads, files or [None] * len(reads), strict=True):
        with duckdb_errors({read.view: read.declared}):
            if read.reader.kind is ReaderKind.DUCKDB:
                source, other = _iceberg_scan(connection, read, scratch, storage)
                if wanted is not None:
                    listed = ", ".join(map(text_literal, wanted)) or "NULL"
                    source += f" WHERE filename IN ({listed})"
                outside += other.outside
                read = replace(read, manifests=other.manifests)
                if other.reason is not None:
                    choice = reader_without_duckdb(read.declared, read.metadata, other.reason)
                    read = replace(read, reader=choice, manifests=())
            if read.reader.kind is ReaderKind.PYICEBERG:
                rows = scan_to_arrow(session, read.declared, read.metadata)
                connection.register(f"{read.view}_rows", rows)
                source = quoted_identifier(f"{read.view}_rows")
            else:
                source += read.metadata.scan_end
            require_manifests(read.declared, read.manifests)
            columns = _view_columns(read.metadata.schema)
            connection.execute(
                f"CREATE VIEW {quoted_identifier(read.view)} AS SELECT {columns} FROM {source}"
            )
        used.append(read)
    report_problems(connection)
    lock_duckdb(
        connection,
        [f"{scratch}/", *(f for read in reads for f in table_folders(read.metadata.json))],
        outside,
    )
    return tuple(used)


def _iceberg_scan(
    connection: duckdb.DuckDBPyConnection, read: TableRead, scratch: Path, storage: ObjectStorage | None
) -> tuple[str, ScannedFiles]:
    file = scratch / f"{read.view}.metadata.json"
    file.write_text(json.dumps(read.metadata.json, default=dict), encoding="utf-8")
    source = f"iceberg_scan({text_literal(str(file))})"
    if read.metadata.snapshot is None:
        return source, ScannedFiles()
    return source, scanned_files(connection, file, read.metadata.json, storage)


def _view_columns(schema: Schema) -> str:
    """The columns of a table; one with variants is given as JSON, because Arrow has none."""
    return ", ".join(
        f"CASE WHEN {name} IS NOT NULL THEN {name}::JSON END AS {name}" if _has_variant(column) else name
        for column in schema.fields
        for name in [quoted_identifier(column.name)]
    )


def _has_variant(column: Field) -> bool:
    types = [column.type, *(field.type for _, field in walk_fields(column.type))]
    return any(isinstance(kind, Primitive) and kind.name == "variant" for kind in types)


def _is_remote(read: TableRead) -> bool:
    """Whether a table, or files that it adopted, are on a storage."""
    metadata = read.metadata.json
    summaries = (snapshot.get("summary") or {} for snapshot in metadata.get("snapshots") or ())
    places = (metadata["location"], *(one[ADOPTED_FROM] for one in summaries if ADOPTED_FROM in one))
    return any(local_path(place) is None for place in places)
