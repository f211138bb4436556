"""Compare two snapshots of one table: schemas by field id, files by path, and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from icemigrate.iceberg.metadata_parts import current_schema, current_schema_id
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema import IndexedField, Schema
from icemigrate.iceberg.schema_json import schema_from_json
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import is_nested
from icemigrate.results.compare_results import (
    ColumnDifference,
    CompareResult,
    FieldDifference,
    FileSet,
    RowDifference,
)
from icemigrate.table_data.column_counts import count_columns, distinct_method
from icemigrate.table_data.compare_rows import compare_rows, count_rows
from icemigrate.table_data.file_lists import open_files
from icemigrate.table_data.live_files import DATA, LiveFile
from icemigrate.table_data.query_tables import open_points
from icemigrate.table_data.snapshot_list import snapshot_info
from icemigrate.table_data.table_points import ChosenSnapshot, ResolvedPoint, choose_snapshot
from icemigrate.table_data.table_session import CurrentTable, TableSession

_SHOWN_PATHS = 100
SAMPLES = 5
"""How many rows of each change are samples, by default."""


def compare_snapshots(
    tables: TableSession,
    name: str,
    before: str | int,
    after: str | int,
    *,
    key: Sequence[str] = (),
    with_rows: bool = True,
    with_distinct: bool = False,
    samples: int = SAMPLES,
) -> CompareResult:
    """The differences of two snapshots.

    Columns are compared by field id, under the names of the second snapshot's schema.  Where neither snapshot
    has delete files, only the rows of data files that differ are read: the other rows are the same.

    :param name: of the table, as migration files write it.
    :param before: an id, a tag, a branch or a time.
    :param after: an id, a tag, a branch or a time.
    :param key: columns that identify a row; without them whole rows are compared, and none is changed.
    :param with_rows: whether data files are read.
    :param with_distinct: whether distinct values are counted however many rows there are.
    :param samples: number of rows of each change in the result.
    :raises UsageError: there is no such table, snapshot or column, or the key is not unique.
    :raises IcemigrateError: a manifest or a data file cannot be read.
    """
    table = tables.load(name)
    first, second = choose_snapshot(table, before), choose_snapshot(table, after)
    reader = open_files(tables, table)
    old, new = (
        {file.path: file for file in reader.of(chosen.json, with_metrics=with_rows)}
        for chosen in (first, second)
    )
    schema = _schema(table, second)
    added = [file for path, file in new.items() if path not in old]
    removed = [file for path, file in old.items() if path not in new]
    rows: RowDifference | None = None
    columns, method = tuple[ColumnDifference, ...](), None
    if with_rows:
        points = [ResolvedPoint(chosen.snapshot_id, schema.id) for chosen in (first, second)]
        whole = (list(old.values()), list(new.values()))
        rows, changed = _compare_rows(tables, table, points, schema, whole, (removed, added), key, samples)
        method = distinct_method(whole, is_wanted=with_distinct)
        with open_points(tables, table, points, (None, None)) as query:
            columns = count_columns(query, schema, changed, whole, method)
    return CompareResult(
        table=str(table.declared),
        name=str(table.name),
        before=snapshot_info(table.metadata, first.json),
        after=snapshot_info(table.metadata, second.json),
        fields=tuple(field_differences(_schema(table, first), schema)),
        files_added=_file_set(added),
        files_removed=_file_set(removed),
        files_kept=sum(file.content == DATA for path, file in new.items() if path in old),
        columns=columns,
        distinct_values=method,
        rows=rows,
    )


def _compare_rows(
    tables: TableSession,
    table: CurrentTable,
    points: Sequence[ResolvedPoint],
    schema: Schema,
    whole: Sequence[Sequence[LiveFile]],
    differing: Sequence[Sequence[LiveFile]],
    key: Sequence[str],
    samples: int,
) -> tuple[RowDifference, Mapping[str, int]]:
    """The rows that differ, from the files that differ where their rows are the same as in the files.

    :param whole: all files of both snapshots.
    :param differing: the files that only one of them has.
    """
    if all(file.content == DATA for files in whole for file in files):
        wanted = [[file.path for file in files] for files in differing]
        with open_points(tables, table, points, wanted) as query:
            expected = [sum(file.rows for file in files) for files in differing]
            # A reader may write the paths of files otherwise than the manifests do.
            if count_rows(query) == expected:
                return compare_rows(query, schema, key, samples, is_whole=False)
    with open_points(tables, table, points, (None, None)) as query:
        return compare_rows(query, schema, key, samples, is_whole=True)


def field_differences(before: Schema, after: Schema) -> Iterator[FieldDifference]:
    """The differences of two schemas by field id, in the order of the ids."""
    old, new = _fields(before), _fields(after)
    for number in sorted(old.keys() | new.keys()):
        was, now = old.get(number), new.get(number)
        if was is None:
            assert now is not None
            yield FieldDifference(number, "added", format_path(now.path), None, _type(now))
        elif now is None:
            yield FieldDifference(number, "dropped", format_path(was.path), _type(was), None)
        else:
            yield from _changes(number, was, now)


def _changes(number: int, was: IndexedField, now: IndexedField) -> Iterator[FieldDifference]:
    path = format_path(now.path)
    if was.field.name != now.field.name:
        yield FieldDifference(number, "renamed", path, format_path(was.path), path)
    if not is_nested(now.field.type) and was.field.type != now.field.type:
        yield FieldDifference(number, "retyped", path, _type(was), _type(now))
    if was.field.required != now.field.required:
        yield FieldDifference(number, "required" if now.field.required else "optional", path)
    if was.field.doc != now.field.doc:
        yield FieldDifference(number, "described", path, was.field.doc, now.field.doc)


def _fields(schema: Schema) -> Mapping[int, IndexedField]:
    return {field.id: IndexedField(field, path, None) for path, field in schema.walk()}


def _type(found: IndexedField) -> str:
    return format_type(found.field.type)


def _schema(table: CurrentTable, chosen: ChosenSnapshot) -> Schema:
    """The schema of a snapshot; the current one of a branch, and where metadata has lost it."""
    metadata = table.metadata
    if chosen.has_current_schema:
        return current_schema(metadata)
    schemas: Mapping[int, Any] = {schema["schema-id"]: schema for schema in metadata["schemas"]}
    return schema_from_json(
        schemas.get(chosen.json.get("schema-id", -1)) or schemas[current_schema_id(metadata)]
    )


def _file_set(files: Sequence[LiveFile]) -> FileSet:
    data = [file for file in files if file.content == DATA]
    return FileSet(
        data_files=len(data),
        rows=sum(file.rows for file in data),
        data_bytes=sum(file.size for file in data),
        delete_files=len(files) - len(data),
        paths=tuple(file.path for file in files[:_SHOWN_PATHS]),
    )
