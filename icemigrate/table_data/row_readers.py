"""The stored rows of a table with the files that they are in, and why Spark alone can change them."""

from __future__ import annotations

import json

from icemigrate.catalog.metadata_files import local_path
from icemigrate.iceberg.metadata_parts import current_schema_id
from icemigrate.iceberg.table import MAIN_BRANCH
from icemigrate.iceberg.table_properties import MERGE_ON_READ, whole_number
from icemigrate.metadata_engine.manifest_schemas import NEWEST_FORMAT_VERSION
from icemigrate.metadata_engine.table_store import FileStore
from icemigrate.table_data.duckdb_problems import report_problems
from icemigrate.table_data.duckdb_scans import scanned_files, table_folders
from icemigrate.table_data.duckdb_session import load_iceberg, lock_duckdb, quoted_identifier, text_literal
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.parquet_output import needs_one_thread
from icemigrate.table_data.query_metadata import point_metadata
from icemigrate.table_data.query_readers import reason_against_duckdb
from icemigrate.table_data.table_points import ResolvedPoint
from icemigrate.table_data.table_session import CurrentTable

_VIRTUAL = frozenset({"filename", "file_row_number"})
"""Columns that DuckDB adds to the rows of a file."""


class SparkNeeded(Exception):
    """Spark alone can make a change of rows.

    :ivar table: as it is now.
    :ivar reason: a sentence with a subject, such as ``table `a.b` has ...``.
    """

    def __init__(self, table: CurrentTable, reason: str) -> None:
        super().__init__(reason)
        self.table, self.reason = table, reason


def _spark_reason(table: CurrentTable, target: LoadTarget, mode: str) -> str | None:
    """Why a change of rows needs Spark, by the metadata of the table alone; ``None`` where it does not."""
    name, metadata = f"table `{target.name}`", target.metadata
    if metadata["format-version"] >= NEWEST_FORMAT_VERSION:
        return f"{name} has format version {metadata['format-version']}, whose rows keep their ids"
    if target.properties.get(mode, "").lower() == MERGE_ON_READ:
        return f"{name} has `{mode}: {MERGE_ON_READ}`"
    if local_path(metadata["location"]) is None:
        return f"the files of {name} are at {metadata['location']}"
    if "encryption.key-id" in target.properties:
        return f"{name} is encrypted"
    if any(column.name.lower() in _VIRTUAL for column in target.columns):
        return f"{name} has a column with a name that DuckDB uses itself"
    summary = _summary(table)
    is_first = metadata["format-version"] == 1
    if summary is not None and not is_first and summary.get("total-equality-deletes") != "0":
        return f"{name} may have equality deletes"
    return None


def _summary(table: CurrentTable) -> dict[str, str] | None:
    """The summary of the current snapshot; ``None`` where there is none."""
    metadata = table.metadata
    main = metadata["refs"].get(MAIN_BRANCH)
    if main is None:
        return None
    found = next(s for s in metadata["snapshots"] if s["snapshot-id"] == main["snapshot-id"])
    return dict(found.get("summary") or {})


def total_rows(table: CurrentTable) -> int | None:
    """The number of rows of the current snapshot, as far as its summary has it."""
    return whole_number((_summary(table) or {}).get("total-records"))


def stored_rows(
    db: LoadDatabase,
    table: CurrentTable,
    target: LoadTarget,
    files: FileStore,
    mode: str,
    *,
    locks: bool = False,
) -> str | None:
    """The current rows in DuckDB, with their deletes applied; ``None`` for a table without a snapshot.

    The relation has the columns of the table, and ``filename``.

    :param mode: the property with the mode of the change.
    :param locks: whether DuckDB afterwards opens no files but the table's and those of its own folder.
    :raises SparkNeeded: the rows cannot be changed without Spark.
    """
    if (reason := _spark_reason(table, target, mode)) is not None:
        raise SparkNeeded(table, reason)
    metadata = table.metadata
    main = metadata["refs"].get(MAIN_BRANCH)
    if main is None:
        return None
    point = ResolvedPoint(main["snapshot-id"], current_schema_id(metadata))
    found = point_metadata(metadata, point, files.read)
    against = reason_against_duckdb(found)
    if against is None:
        path = db.temporary_file(".metadata.json", json.dumps(found.json, default=dict).encode())
        load_iceberg(db.connection)
        scanned = scanned_files(db.connection, path, found.json)
        against = scanned.reason
    if against is not None:
        raise SparkNeeded(table, f"DuckDB does not read table `{target.name}`, because {against}")
    if locks:
        if needs_one_thread(target):
            db.run("SET threads = 1")  # cannot be set in a locked DuckDB
        report_problems(db.connection)
        lock_duckdb(db.connection, [f"{db.folder}/", *table_folders(metadata)], scanned.outside)
    columns = ", ".join(quoted_identifier(column.name) for column in target.columns)
    return f"(SELECT {columns}, filename FROM iceberg_scan({text_literal(str(path))}){found.scan_end})"
