"""The rows of a query as Parquet data files of a table.

DuckDB writes them to a temporary folder.  When all of them are complete, they are copied to the table's
folder, so that a failed load leaves nothing there.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from icemigrate.diagnostics import format_size
from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.arrow_types import arrow_schema
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.table_properties import whole_number
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.parquet_metrics import count_arrow_nans, describe_data_file
from icemigrate.metadata_engine.table_store import FileStore
from icemigrate.system.measured_activity import ROWS, WorkUnit, measured_activity
from icemigrate.table_data.duckdb_session import text_literal
from icemigrate.table_data.duckdb_types import field_ids, is_exact
from icemigrate.table_data.early_imports import imported_meanwhile
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.partition_columns import (
    fetched,
    order_sql,
    partition_columns,
    stored_partition,
)
from icemigrate.table_data.row_relations import missing_required

_CODECS = {"zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"}
_LARGEST_FILE = 128 * 1024 * 1024
"""In bytes; Arrow has a file in memory that it writes again."""
BYTES = WorkUnit(format_size)
_LOADED, _PARTITIONS = "_icemigrate_loaded", "_icemigrate_partitions"
"""Names of relations in SQL that no column has."""
_LARGEST_PART = 60
"""Of a partition's folder name, in characters."""


class NullInRequired(Exception):
    """A required column, or a field inside a column, has a null; the rows have to be checked one by one.

    :ivar column: the name of the column.
    """

    def __init__(self, column: str) -> None:
        super().__init__(f"column `{column}` lacks a required value")
        self.column = column


class TemporaryFile(Frozen):
    """A Parquet file that is not yet in the table's folder."""

    path: Path
    partition: tuple[Any, ...] = ()


def write_parquet(
    db: LoadDatabase, query: str, target: LoadTarget, *, is_checked: bool = False
) -> tuple[TemporaryFile, ...]:
    """Write the rows of a query to temporary files, by partition and in the table's order.

    :param query: its columns are those of the table.
    :param is_checked: whether the query has no nulls in required columns and fields.
    :raises NullInRequired: it has one.
    :raises EngineError: the table has a partition field that is not supported.
    """
    folder = db.folder / uuid.uuid4().hex
    order = order_sql(target.order, target)
    if target.spec.live:
        found = tuple(_partitioned(db, query, target, folder, order))
    else:
        found = tuple(map(TemporaryFile, _copied(db, query, target, folder, order)))
    if not is_checked and (column := _column_with_null(db, found, target)) is not None:
        raise NullInRequired(column)
    return found


def needs_one_thread(target: LoadTarget) -> bool:
    """Whether several threads would mix the rows of a partition, which the table has in an order."""
    return bool(target.spec.live) and order_sql(target.order, target) is not None


def _number(path: Path) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall("[0-9]+", path.name))


def _options(target: LoadTarget) -> str:
    ids = field_ids(target.columns)
    return f"FORMAT parquet, COMPRESSION {parquet_codec(target)}, FIELD_IDS {ids}"


def parquet_codec(target: LoadTarget) -> str:
    """The compression of a table's files, as DuckDB and Arrow name it."""
    codec = target.properties.get("write.parquet.compression-codec", "zstd").lower()
    return codec if codec in _CODECS else "zstd"


def _copied(db: LoadDatabase, query: str, target: LoadTarget, folder: Path, order: str | None) -> list[Path]:
    """The files of rows that are all of one partition."""
    size = whole_number(target.properties.get("write.target-file-size-bytes")) or _LARGEST_FILE
    # In parentheses, so that the terms name the new values of the query, whatever its form.
    ordered = query if order is None else f"SELECT * FROM ({query}) ORDER BY {order}"
    limit = f", FILE_SIZE_BYTES {min(size, _LARGEST_FILE)}"
    with imported_meanwhile():
        db.run(f"COPY ({ordered}) TO {text_literal(str(folder))} ({_options(target)}{limit})")
    return sorted(folder.rglob("*.parquet"), key=_number)


def _partitioned(
    db: LoadDatabase, query: str, target: LoadTarget, folder: Path, order: str | None
) -> Iterator[TemporaryFile]:
    """One or more files for each partition."""
    suffix = folder.name
    loaded = f"loaded_{suffix}"
    db.run(f"CREATE TEMP TABLE {loaded} AS {query}")
    columns = partition_columns(db, target, loaded)
    names = [f"_icemigrate_part{number}" for number in range(len(columns))]
    values = ", ".join(f"{c.sql} AS {name}" for c, name in zip(columns, names, strict=True))
    valued = f"(SELECT *, {values} FROM {loaded})"
    listed = ", ".join(names)
    db.run(
        f"CREATE TEMP TABLE partitions_{suffix} AS "
        f"SELECT row_number() OVER () AS _icemigrate_number, {listed} "
        f"FROM (SELECT DISTINCT {listed} FROM {valued})"
    )
    shown = ", ".join(fetched(c, name) for c, name in zip(columns, names, strict=True))
    rows = db.query(f"SELECT _icemigrate_number, {shown} FROM partitions_{suffix}")
    if len(rows) == 1:
        (_, *partition) = rows[0]
        for path in _copied(db, f"SELECT * FROM {loaded}", target, folder, order):
            yield TemporaryFile(path, stored_partition(columns, partition))
        db.run(f"DROP TABLE {loaded}")
        db.run(f"DROP TABLE partitions_{suffix}")
        return
    same = " AND ".join(f"{_LOADED}.{name} IS NOT DISTINCT FROM {_PARTITIONS}.{name}" for name in names)
    sorted_by = "" if order is None else f" ORDER BY {order}"
    threads = db.query("SELECT current_setting('threads')")[0][0]
    sets_threads = needs_one_thread(target) and threads != 1
    if sets_threads:
        db.run("SET threads = 1")
    ((total,),) = db.query(f"SELECT count(*) FROM {loaded}")
    copy = (
        f"COPY (SELECT {_LOADED}.* EXCLUDE ({listed}), {_PARTITIONS}._icemigrate_number "
        f"FROM {valued} {_LOADED} JOIN partitions_{suffix} {_PARTITIONS} ON {same}{sorted_by}) "
        f"TO {text_literal(str(folder))} ({_options(target)}, PARTITION_BY (_icemigrate_number))"
    )
    with measured_activity(f"Writing rows of {target.name} by partition", ROWS, total, db.share):
        db.run(copy)
    if sets_threads:
        db.run("RESET threads")
    db.run(f"DROP TABLE {loaded}")
    db.run(f"DROP TABLE partitions_{suffix}")
    for number, *partition in rows:
        below = folder / f"_icemigrate_number={number}"
        for path in sorted(below.rglob("*.parquet"), key=_number):
            yield TemporaryFile(path, stored_partition(columns, partition))


def _column_with_null(db: LoadDatabase, files: Sequence[TemporaryFile], target: LoadTarget) -> str | None:
    """The first required column that has a null in a file, also in a required field inside it.

    A condition on one unnested column is cheap: DuckDB answers it from the statistics of the files.
    """
    conditions = [(column, condition) for column in target.columns for condition in missing_required(column)]
    if not conditions or not files:
        return None
    rows = _rows_of(files)
    for column, condition in conditions:
        if db.query(f"SELECT 1 FROM {rows} WHERE {condition} LIMIT 1"):
            return column.name
    return None


def count_rows(db: LoadDatabase, files: Sequence[TemporaryFile]) -> int:
    """The number of rows of temporary files."""
    return int(db.query(f"SELECT count(*) FROM {_rows_of(files)}")[0][0]) if files else 0


def _rows_of(files: Sequence[TemporaryFile]) -> str:
    """The relation of temporary files, in SQL."""
    listed = ", ".join(text_literal(str(file.path)) for file in files)
    return f"read_parquet([{listed}], hive_partitioning = false)"


def copy_to_table(
    written: Sequence[TemporaryFile], target: LoadTarget, files: FileStore
) -> tuple[DataFile, ...]:
    """Copy temporary files to the table's folder; where one fails, none remains.

    :raises EngineError: a file cannot be written.
    """
    order_id = target.order.id if order_sql(target.order, target) is not None else 0
    copied: list[DataFile] = []
    total = sum(file.path.stat().st_size for file in written)
    what = f"Adding data files to {target.name}"
    try:
        with measured_activity(what, BYTES, total) as add:
            _copy_each(written, target, files, order_id, copied, add)
    except BaseException:
        delete_files(copied, files)
        raise
    return tuple(copied)


def _copy_each(
    written: Sequence[TemporaryFile],
    target: LoadTarget,
    files: FileStore,
    order_id: int,
    copied: list[DataFile],
    add: Callable[[int], None],
) -> None:
    """Copy files, and list each one before it is written.

    :param add: takes the size of each copied file.
    """
    for number, file in enumerate(written):
        path, nan_counts = _exact(file.path, target)
        location = data_location(target, file.partition, number)
        found = describe_data_file(location, path, target.columns, target.metadata, nan_counts)
        if found.records == 0:
            continue
        copied.append(replace(found, partition=file.partition, sort_order_id=order_id))
        files.write_file(location, path)
        add(found.size)


def data_location(target: LoadTarget, partition: Sequence[Any], number: int) -> str:
    """The location of a new data file.

    :param number: of the file in its commit.
    """
    folder = "/".join((target.data_folder, *_folder_names(target, partition)))
    return f"{folder}/{number:05d}-0-{uuid.uuid4()}-00001.parquet"


def delete_files(written: Sequence[DataFile], files: FileStore) -> None:
    """Delete data files that no snapshot refers to."""
    for file in written:
        files.delete(file.path)


def _folder_names(target: LoadTarget, partition: Sequence[Any]) -> Iterator[str]:
    """Folders for people: readers take partitions from manifests.  A name has only plain characters."""
    for field, value in zip(target.spec.fields, partition, strict=False):
        text = f"{field.name}={'null' if value is None else value}"
        yield re.sub("[^A-Za-z0-9_.=-]", "_", text)[:_LARGEST_PART]


def _exact(path: Path, target: LoadTarget) -> tuple[Path, dict[FieldPath, int] | None]:
    """A file whose columns have the types that the specification requires.

    Where Arrow writes it again, the second value has its numbers of values that are not a number.
    """
    if all(is_exact(column.type) for column in target.columns):
        return path, None
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema(target.columns)
    exact = path.with_suffix(".exact")
    try:
        table = pq.read_table(path, partitioning=None).cast(schema)
    except pa.ArrowInvalid as error:
        raise EngineError(f"a row does not fit table `{target.name}`: {error}") from error
    pq.write_table(table, exact, compression="zstd", store_schema=False, store_decimal_as_integer=True)
    return exact, count_arrow_nans(target.columns, table)
