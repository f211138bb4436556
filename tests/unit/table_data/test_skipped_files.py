"""`--explain`: which files partition values skip, and which ones column statistics."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import (
    AlwaysTrue,
    BooleanExpression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    NotEqualTo,
    NotNull,
)
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType, StructType

from icemigrate import IcebergManager
from icemigrate.project.catalog_files import catalog_project
from icemigrate.render.formats import render
from icemigrate.results.query_results import FileGroup, QueriedTable
from icemigrate.table_data import skipped_files
from icemigrate.table_data.query_explain import explain_query
from icemigrate.table_data.query_tables import open_sql_query
from icemigrate.table_data.scan_filters import scan_expression
from icemigrate.table_data.table_session import open_tables

COLUMNS = {"id": "long", "kind": "string", "at": "timestamptz", "price": "double", "odd name": "int"}
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve files of three kinds and three days; a second table of two files."""
    folder = tmp_path_factory.mktemp("skips")
    with IcebergManager(folder) as manager:
        manager.create_table("s.t", COLUMNS, partition_by=["kind", "day(at)", "truncate(100, id)"])
        manager.create_table("s.u", {"id": "long"})
        for load in range(4):
            rows = [
                {
                    "id": 10 * load + number,
                    "kind": "abc"[number],
                    "at": datetime(2026, 1, 1 + number, load, tzinfo=timezone.utc),
                    "price": load - 0.5,
                    "odd name": load,
                }
                for number in range(3)
            ]
            manager.insert_data("s.t", rows)
        for id_ in (11, 500):
            manager.insert_data("s.u", [{"id": id_}])
    return folder


def explained(lake: Path, sql: str) -> QueriedTable:
    """What a query of one table reads."""
    with (
        open_tables(catalog_project(lake), None, is_recorded=False) as tables,
        open_sql_query(tables, sql) as query,
    ):
        (table,) = explain_query(tables, query).tables
    return table


def _days(rows: Rows) -> set[date]:
    return {row["at"].date() for row in rows}


@pytest.mark.parametrize(
    ("where", "in_partition", "in_bounds"),
    [
        ("kind = 'a'", lambda r: r[0]["kind"] == "a", lambda _: True),
        ("kind = 'a' AND id > 15", lambda r: r[0]["kind"] == "a", lambda r: max(x["id"] for x in r) > 15),
        (
            "kind IN ('a', 'c') AND price < -0.25",
            lambda r: r[0]["kind"] in "ac",
            lambda r: min(x["price"] for x in r) < -0.25,
        ),
        (
            "t.at >= '2026-01-02' AND t.at < '2026-01-03 02:00:00+00' AND kind LIKE 'b%'",
            lambda r: _days(r) <= {date(2026, 1, 2), date(2026, 1, 3)} and r[0]["kind"] == "b",
            lambda r: min(x["at"] for x in r) < datetime(2026, 1, 3, 2, tzinfo=timezone.utc),
        ),
        ("id = 211", lambda _: True, lambda _: False),
        ("kind IS NULL", lambda _: False, lambda _: True),
        ("id IN (SELECT id FROM s.u WHERE id < 100)", lambda _: True, lambda r: r[0]["id"] == 11),
        ('"odd name" = 3', None, None),
        ("upper(kind) = 'A'", lambda _: True, lambda _: True),
    ],
)
def test_skipped_files_are_those_of_a_naive_count(
    lake: Path,
    where: str,
    in_partition: Callable[[Rows], bool] | None,
    in_bounds: Callable[[Rows], bool] | None,
) -> None:
    data = [path for path in lake.rglob("*.parquet") if "/t/" in str(path)]
    rows = {path: pq.read_table(path, partitioning=None).to_pylist() for path in data}
    with (
        open_tables(catalog_project(lake), None, is_recorded=False) as tables,
        open_sql_query(tables, f"SELECT * FROM s.t WHERE {where}") as query,
    ):
        found = explain_query(tables, query)
    table = found.tables[0]
    assert (table.files, table.bytes) == (12, sum(path.stat().st_size for path in data))
    if in_partition is None or in_bounds is None:
        # DuckDB's plan does not quote names: this filter has no sure reading.
        assert table.partition_skips == table.statistics_skips == FileGroup()
        assert table.other_skips.files == 9
        assert "skipped  9 files" in render(found)
        assert "for other reasons" in render(found)
        return
    outside = [path for path in data if not in_partition(rows[path])]
    excluded = [path for path in data if path not in outside and not in_bounds(rows[path])]
    assert table.partition_skips == FileGroup(len(outside), sum(path.stat().st_size for path in outside))
    assert table.statistics_skips == FileGroup(len(excluded), sum(path.stat().st_size for path in excluded))
    assert table.other_skips == FileGroup()
    assert table.files_read == 12 - len(outside) - len(excluded)


@pytest.mark.parametrize(("sql", "read"), [("SELECT count(*) FROM s.t", 0), ("SELECT * FROM s.t", 12)])
def test_a_file_is_read_that_the_query_opens(lake: Path, sql: str, read: int) -> None:
    table = explained(lake, sql)
    assert (table.files_read, table.other_skips.files) == (read, 12 - read)


@pytest.mark.parametrize("failure", [KeyError(7), RuntimeError("the storage refuses"), ImportError("s3fs")])
def test_files_have_no_reason_where_their_manifests_cannot_be_read(
    lake: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def refuse(*_args: Any) -> None:
        raise failure

    monkeypatch.setattr(skipped_files, "static_table", refuse)
    table = explained(lake, "SELECT * FROM s.t WHERE kind = 'a'")
    assert (table.files_read, table.other_skips.files, table.partition_skips) == (4, 8, FileGroup())


def test_a_pyiceberg_without_the_evaluation_of_statistics_is_an_error(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("pyiceberg.expressions.visitors._InclusiveMetricsEvaluator")
    with pytest.raises(ImportError, match="_InclusiveMetricsEvaluator"):
        explained(lake, "SELECT * FROM s.t WHERE kind = 'a'")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("optional: id IN (1, -2)", In("id", [1, -2])),
        ("id>=3 AND upper(kind) = 'A'", GreaterThanOrEqual("id", 3)),
        ("id=3 OR upper(kind) = 'A'", AlwaysTrue()),
        ("(kind IS NOT NULL)", NotNull("kind")),
        ("(NOT (id = 3))", AlwaysTrue()),
        ("id='x'", AlwaysTrue()),
        ("id>1.5", AlwaysTrue()),
        ("id<-1.5 AND id>=3", GreaterThanOrEqual("id", 3)),
        ("id IN (1, 2.5)", AlwaysTrue()),
        ("odd=1.5", AlwaysTrue()),
        ("s.x>1.5", GreaterThan("s.x", 1.5)),
        ("id=kind", AlwaysTrue()),
        ("no such filter (", AlwaysTrue()),
        ("odd name=3 AND id=4", AlwaysTrue()),
        ("s.x!=2.0", NotEqualTo("s.x", 2.0)),
    ],
)  # fmt: skip
def test_a_filter_becomes_no_stricter(text: str, expected: BooleanExpression) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "kind", StringType()),
        NestedField(3, "odd name", IntegerType()),
        NestedField(4, "s", StructType(NestedField(5, "x", DoubleType()))),
        NestedField(6, "odd", IntegerType()),
    )
    assert scan_expression([text], schema) == expected
