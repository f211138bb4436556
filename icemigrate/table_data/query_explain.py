"""What a query reads: the reader of each table, and the files that partitions and statistics skip."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.catalog.file_layouts import DATA_FILE, STATUS, STATUS_DELETED
from icemigrate.catalog.metadata_files import ReadBytes
from icemigrate.frozen import Frozen
from icemigrate.results.query_results import QueriedTable, QueryExplanation
from icemigrate.table_data.query_errors import duckdb_errors
from icemigrate.table_data.query_metadata import manifest_records
from icemigrate.table_data.query_readers import ReaderKind
from icemigrate.table_data.query_tables import OpenQuery
from icemigrate.table_data.query_views import TableRead

_PATH, _MANIFEST_CONTENT, _DATA_MANIFEST = 500, 517, 0
_FILE_PATH, _FILE_SIZE = 100, 104


class _FileSizes(Frozen):
    """The files of a snapshot.

    :param data: the size of each data file in bytes, by its path.
    :param deletes: number of delete files.
    """

    data: Mapping[str, int]
    deletes: int


def explain_query(query: OpenQuery, read: ReadBytes) -> QueryExplanation:
    """Run a query, and report what it read of each table.

    :param read: reads manifests.
    :raises IcemigrateError: the query fails, or a manifest cannot be read.
    """
    with duckdb_errors(query.reads_by_view):
        plan = query.connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {query.sql}").fetchall()[0][1]
    scans = list(_scans(json.loads(plan)))
    return QueryExplanation(tuple(_explained(one, _files(one, read), scans) for one in query.reads))


def _explained(one: TableRead, files: _FileSizes, scans: list[str]) -> QueriedTable:
    paths = set(files.data)
    if one.reader.kind is ReaderKind.DUCKDB:
        # DuckDB lists the files of a scan in one text, and paths may contain any character.
        paths = {path for path in paths if any(_shown(path) in scan for scan in scans)}
    return QueriedTable(
        table=one.declared,
        snapshot_id=one.point.snapshot_id,
        reader=one.reader.kind.value,
        reason=one.reader.reason,
        files=len(files.data),
        bytes=sum(files.data.values()),
        files_read=len(paths),
        bytes_read=sum(files.data[path] for path in paths),
        delete_files=files.deletes,
    )


def _shown(path: str) -> str:
    """A path as DuckDB shows it."""
    return path.removeprefix("file://").removeprefix("file:")


def _scans(node: Any) -> Iterator[str]:
    """The names of the files that each scan of a plan read."""
    if isinstance(node, Mapping):
        if isinstance(names := (node.get("extra_info") or {}).get("Filename(s)"), str):
            yield names
        for child in node.get("children") or ():
            yield from _scans(child)


def _files(one: TableRead, read: ReadBytes) -> _FileSizes:
    snapshot = one.metadata.snapshot
    if snapshot is None or "manifest-list" not in snapshot:
        return _FileSizes({}, 0)
    data: dict[str, int] = {}
    deletes = 0
    for manifest in manifest_records(snapshot["manifest-list"], (_PATH, _MANIFEST_CONTENT), read):
        for entry in manifest_records(manifest[_PATH], (STATUS, DATA_FILE, _FILE_PATH, _FILE_SIZE), read):
            if entry[STATUS] == STATUS_DELETED:
                continue
            if (manifest.get(_MANIFEST_CONTENT) or _DATA_MANIFEST) == _DATA_MANIFEST:
                data[entry[DATA_FILE][_FILE_PATH]] = entry[DATA_FILE][_FILE_SIZE]
            else:
                deletes += 1
    return _FileSizes(data, deletes)
