"""Data files that Arrow writes row group by row group: the same as those that DuckDB writes."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icemigrate.errors import EngineError
from icemigrate.iceberg.arrow_types import arrow_schema
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.pipeline import iceberg_sink, row_group_files
from icemigrate.pipeline.iceberg_sink import IcebergWriter
from icemigrate.pipeline.row_group_files import EncodedFile, RowGroupFiles
from icemigrate.pipeline.task_results import TableEntries
from icemigrate.pipeline.telemetry_arrow import UnsuitableTable
from icemigrate.table_data.load_database import open_load_database
from icemigrate.table_data.load_target import load_target
from icemigrate.table_data.table_session import TableSession
from tests.support.table_project import TableProject

TABLE = """\
  - name: otel.by_{number}
    columns:
      - {{name: id, type: "fixed[4]"}}
      - {{name: name, type: string}}
      - {{name: number, type: long}}
      - {{name: flag, type: boolean}}
      - {{name: day, type: date}}
      - {{name: at, type: timestamptz}}
      - {{name: value, type: double}}
      - {{name: tags, type: "map<string, string>"}}
      - {{name: links, type: "list<struct<id: required fixed[4], name: string>>"}}
    partition_by: [{terms}]
"""
TERMS = (
    "",
    "name",
    "number, flag",
    "day",
    "at",
    "year(at)",
    "month(at)",
    "day(at)",
    "hour(at)",
    "year(day)",
    "month(day)",
    "name, day(at)",
)
_VALUE = 7
"""The field id of `value`."""
BY_DUCKDB = ("truncate(10, number)", "bucket(4, name)")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableSession]:
    """Tables with the same columns, partitioned by each of the terms."""
    tables = "".join(
        TABLE.format(number=number, terms=", ".join(f'"{term}"' for term in _split(terms)))
        for number, terms in enumerate((*TERMS, *BY_DUCKDB))
    )
    project = TableProject.create(tmp_path_factory.mktemp("project"), f"tables:\n{tables}")
    with project.tables() as opened:
        yield opened


def _split(terms: str) -> list[str]:
    if terms in BY_DUCKDB:
        return [terms]
    return terms.split(", ") if terms else []


def rows(columns: tuple[Field, ...]) -> Any:
    """Some of the values are equal, some are null, and some are before 1970."""
    utc = datetime.timezone.utc
    at = datetime.datetime(2026, 3, 2, 23, 59, 59, 999_999, utc)
    found = [
        {
            "id": bytes([0, 0, 0, number]),
            "name": ("a", "b é", None)[number % 3],
            "number": (-11, 5, None)[number % 3],
            "flag": (True, False, None)[number % 3],
            "day": None if number == 5 else datetime.date(1969, 12, 31) + datetime.timedelta(100 * number),
            "at": None
            if number == 4
            else at - datetime.timedelta(hours=number % 2, days=20_000 * (number % 4)),
            "value": (1.5, math.nan, None, -0.0)[number % 4],
            "tags": [("k", "v" * number)],
            "links": [{"id": b"abcd", "name": None}],
        }
        for number in range(12)
    ]
    return pa.Table.from_pylist(found, arrow_schema(columns))


def write(session: TableSession, name: str) -> tuple[list[DataFile], list[dict[str, Any]]]:
    """The files of two row groups, and the rows that they have."""
    target = load_target(session.load(name))
    with open_load_database() as db:
        writer = IcebergWriter(lambda: target, db, session.store.files)
        table = rows(target.columns)
        writer.write(table.slice(0, 7))
        writer.write(table.slice(7))
        writer.complete()
        files = list(writer.add_to(TableEntries(name)).files)
    found = [row for one in files for row in pq.ParquetFile(one.path).read().to_pylist()]
    return files, sorted(found, key=lambda row: bytes(row["id"]))


@pytest.mark.parametrize("number", range(len(TERMS)))
def test_files_are_those_that_duckdb_writes(
    session: TableSession, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, found = write(session, f"otel.by_{number}")
    monkeypatch.setattr(iceberg_sink, "arrow_can_write", lambda _target: False)
    others, expected = write(session, f"otel.by_{number}")
    assert repr(found) == repr(expected)
    assert len(found) == 12

    def described(one: DataFile) -> tuple[Any, ...]:
        folder = Path(one.path).parent
        # Arrow gives no bounds of a row group that has values, and none that is a number.
        bounds = [{**of, _VALUE: b""} for of in (one.lower_bounds, one.upper_bounds)]
        return one.partition, folder, one.records, one.value_counts, one.null_counts, one.nan_counts, bounds

    assert sorted(map(repr, map(described, files))) == sorted(map(repr, map(described, others)))


def test_partitions_that_arrow_lacks_are_written_too(session: TableSession) -> None:
    for number in range(len(TERMS), len(TERMS) + len(BY_DUCKDB)):
        files, found = write(session, f"otel.by_{number}")
        assert len(found) == 12
        assert len(files) == len({one.partition for one in files}) > 1


def test_a_required_field_inside_a_column_lacks_a_value(session: TableSession) -> None:
    target = load_target(session.load("otel.by_0"))
    with open_load_database() as db:
        writer = IcebergWriter(lambda: target, db, session.store.files)
        with pytest.raises(UnsuitableTable, match="a field inside a column is required"):
            writer.write(
                pa.Table.from_pylist([{"links": [{"name": "secret"}]}], arrow_schema(target.columns))
            )


def test_a_file_that_duckdb_refuses_leaves_no_view(
    session: TableSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise EngineError("no space left on device")

    monkeypatch.setattr(iceberg_sink, "arrow_can_write", lambda _target: False)
    monkeypatch.setattr(iceberg_sink, "write_parquet", refuse)
    target = load_target(session.load("otel.by_0"))
    with open_load_database() as db:
        writer = IcebergWriter(lambda: target, db, session.store.files)
        writer.write(pa.Table.from_pylist([], arrow_schema(target.columns)))
        with pytest.raises(EngineError, match="no space left"):
            writer.complete()
        with pytest.raises(duckdb.CatalogException):
            db.connection.execute("SELECT * FROM telemetry")


def test_an_error_of_arrow_elsewhere_is_no_missing_value(
    session: TableSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: Any) -> None:
        raise pa.ArrowInvalid("a defect")

    monkeypatch.setattr(iceberg_sink, "by_partition", refuse)
    target = load_target(session.load("otel.by_0"))
    with open_load_database() as db, pytest.raises(pa.ArrowInvalid, match="a defect"):
        IcebergWriter(lambda: target, db, session.store.files).write(
            pa.Table.from_pylist([], arrow_schema(target.columns))
        )


def test_open_files_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_group_files, "_MOST_OPEN", 3)
    monkeypatch.setattr(row_group_files, "_LARGEST_OPEN", 4000)
    columns = (Field(1, "id", Primitive("long")),)
    schema = arrow_schema(columns)
    done = list[tuple[int, EncodedFile]]()
    files = RowGroupFiles[int](columns, schema, lambda key, one: done.append((key, one)), largest_file=3000)
    for key in range(5):
        files.add(key, pa.table([pa.array([key], pa.int64())], schema=schema))
    assert [key for key, _ in done] == [0, 1]
    many = pa.table([pa.array([n * n for n in range(1000)], pa.int64())], schema=schema)
    files.add(3, many)
    assert [key for key, _ in done] == [0, 1, 3]
    for key in (4, 5):
        files.add(key, many.slice(0, 400))
    assert len(done) == 3
    files.add(2, many.slice(0, 300))  # the files of 4 and 5 are larger
    assert [key for key, _ in done[3:]] == [4]
    files.complete()
    read = [pq.ParquetFile(pa.BufferReader(one.content)) for _, one in done]
    assert sum(one.metadata.num_rows for one in read) == sum(one.rows for _, one in done) == 5 + 1000 + 1100
    assert max(one.num_row_groups for one in read) == 2
