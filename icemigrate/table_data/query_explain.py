"""What a query reads: the reader of each table, and the files that partitions and statistics skip."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from icemigrate.catalog.metadata_files import ReadBytes
from icemigrate.frozen import Frozen
from icemigrate.results.query_results import FileGroup, QueriedTable, QueryExplanation
from icemigrate.table_data.live_files import DATA, LiveFileReader
from icemigrate.table_data.query_readers import ReaderKind
from icemigrate.table_data.query_tables import OpenQuery
from icemigrate.table_data.query_views import TableRead
from icemigrate.table_data.skipped_files import SkipReasons, skip_reasons
from icemigrate.table_data.table_session import TableSession

_LOG_FILES = "CALL enable_logging('FileSystem', storage => 'memory')"
_OPENED_FILES = "SELECT DISTINCT path FROM duckdb_logs_parsed('FileSystem') WHERE op = 'OPEN'"
_ICEBERG_SCAN = "ICEBERG_SCAN"
_FILTERS = ("Filters", "Dynamic Filters")
"""The second ones are of a join, known while the query runs."""


class _FileSizes(Frozen):
    """The files of a snapshot.

    :param data: the size of each data file in bytes, by its path.
    :param deletes: number of delete files.
    """

    data: Mapping[str, int]
    deletes: int


class _Scan(Frozen):
    """A scan of a plan.

    :param files: names of some of its files, in one text: DuckDB's plan lists the first five.
    :param filters: conditions that DuckDB gave to it.
    """

    files: str
    filters: tuple[str, ...]


def explain_query(session: TableSession, query: OpenQuery) -> QueryExplanation:
    """Run a query, and report what it read of each table.

    :raises IcemigrateError: the query fails, or a manifest cannot be read.
    """
    query.fetch(_LOG_FILES)
    plan = query.fetch(f"EXPLAIN (ANALYZE, FORMAT json) {query.sql}")[0][1]
    opened = {path for (path,) in query.fetch(_OPENED_FILES)}
    scans = list(_scans(json.loads(plan)))
    found = (
        _explained(session, one, _files(one, session.store.files.read), opened, scans) for one in query.reads
    )
    return QueryExplanation(tuple(found))


def _explained(
    session: TableSession,
    one: TableRead,
    files: _FileSizes,
    opened: Collection[str],
    scans: Sequence[_Scan],
) -> QueriedTable:
    paths = set(files.data)
    reasons = SkipReasons()
    if one.reader.kind is ReaderKind.DUCKDB:
        paths = {path for path in paths if _shown(path) in opened}
        own = [scan for scan in scans if any(_shown(path) in scan.files for path in files.data)]
        # A scan that has no files may be of any table.
        filters = [scan.filters for scan in own or scans if own or not scan.files]
        reasons = skip_reasons(session, one, filters, files.data.keys() - paths)
    return QueriedTable(
        table=one.declared,
        snapshot_id=one.point.snapshot_id,
        reader=one.reader.kind.value,
        reason=one.reader.reason,
        files=len(files.data),
        bytes=sum(files.data.values()),
        files_read=len(paths),
        bytes_read=sum(files.data[path] for path in paths),
        partition_skips=_file_group(files, reasons.by_partitions),
        statistics_skips=_file_group(files, reasons.by_statistics),
        delete_files=files.deletes,
    )


def _file_group(files: _FileSizes, paths: Collection[str]) -> FileGroup:
    return FileGroup(len(paths), sum(files.data[path] for path in paths))


def _shown(path: str) -> str:
    """A path as DuckDB shows it."""
    return path.removeprefix("file://").removeprefix("file:")


def _scans(node: Any) -> Iterator[_Scan]:
    """The scans of a plan that read files."""
    if isinstance(node, Mapping):
        info = node.get("extra_info") or {}
        if info.get("Function") == _ICEBERG_SCAN or "Filename(s)" in info:
            filters = [text for key in _FILTERS for text in _as_list(info.get(key))]
            yield _Scan(str(info.get("Filename(s)") or ""), tuple(filters))
        for child in node.get("children") or ():
            yield from _scans(child)


def _as_list(value: Any) -> list[str]:
    """The texts of a plan's entry: one is no list."""
    if value is None:
        return []
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _files(one: TableRead, read: ReadBytes) -> _FileSizes:
    snapshot = one.metadata.snapshot
    if snapshot is None or "manifest-list" not in snapshot:
        return _FileSizes({}, 0)
    files = list(LiveFileReader(one.metadata.json, read).of(snapshot))
    data = {file.path: file.size for file in files if file.content == DATA}
    return _FileSizes(data, len(files) - len(data))
