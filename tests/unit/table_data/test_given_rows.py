"""Frames of pandas, Polars and DuckDB, and mappings, as rows of tables, read by PyIceberg."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import types

from icemigrate.errors import IcemigrateError, Mistakes, UsageError
from icemigrate.table_data.insert_rows import insert_data
from icemigrate.table_data.upsert_rows import upsert
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

EVERY_COLUMN = """
columns:
  - {name: number, type: long}
  - {name: price, type: "decimal(10,2)"}
  - {name: share, type: double}
  - {name: name, type: string}
  - {name: day, type: date}
  - {name: clock, type: time}
  - {name: local, type: timestamp}
  - {name: at, type: timestamptz}
  - {name: parts, type: "struct<a: int, b: string>"}
  - {name: list, type: "list<int>"}
  - {name: raw, type: binary}
"""
AT = datetime(2024, 1, 1, 9, tzinfo=timezone.utc)
VALUES: dict[str, Any] = {
    "number": 7, "price": Decimal("1.50"), "share": 0.1, "name": "x", "day": date(2024, 2, 29),
    "clock": time(1, 2, 3, 4), "local": datetime(2024, 1, 1, 10), "at": AT, "parts": {"a": 1, "b": "q"},
    "list": [1, 2], "raw": b"\0a",
}  # fmt: skip
EXPECTED = sorted([tuple(VALUES.values()), (None,) * len(VALUES)], key=str)
COLUMNS = {name: [value, None] for name, value in VALUES.items()}


def pandas_frame() -> pd.DataFrame:
    """Each column in the form that pandas users have it: nullable integers, categories, zones."""
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in COLUMNS.items()})
    frame["number"] = pd.array([7, pd.NA], dtype="Int64")
    frame["share"] = [0.1, np.nan]
    frame["name"] = pd.Categorical(["x", None])
    frame["local"] = pd.to_datetime(frame["local"])
    frame["at"] = pd.to_datetime(pd.Series([AT, None])).dt.tz_convert("Europe/Berlin")
    return frame.set_index(pd.Index(["p", "q"], name="left_out"))


def polars_frame() -> pl.DataFrame:
    """Each column in the form that Polars users have it."""
    zoned = pl.col("at").dt.convert_time_zone("Europe/Berlin").cast(pl.Datetime("ns", "Europe/Berlin"))
    return pl.DataFrame(COLUMNS).with_columns(zoned, pl.col("name").cast(pl.Categorical))


def spark_frame(**methods: Callable[[Any], Any]) -> Any:
    """A frame of PySpark that has two columns, and of the methods that read rows only these."""
    schema = types.StructType([types.StructField(name, types.LongType()) for name in ("x", "to_spark")])
    methods = {"to": lambda self, _schema: self, **methods}
    kind = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe", "schema": schema, **methods})
    frame = kind()
    frame.to_spark = "a column"
    return frame


FRAMES: dict[str, Any] = {
    "pandas": pandas_frame,
    "pandas of Arrow": lambda: polars_frame().to_pandas(use_pyarrow_extension_array=True),
    "Polars": polars_frame,
    "lazy Polars": lambda: polars_frame().lazy(),
    "DuckDB": lambda: duckdb.from_arrow(pa.table(COLUMNS)),
    "Arrow": lambda: pa.table(COLUMNS),
    "a reader": lambda: pa.table(COLUMNS).to_reader(),
    "rows": lambda: [VALUES, {}],
    "columns": lambda: COLUMNS,
    "columns of NumPy and pandas": lambda: {
        **COLUMNS,
        "share": pl.Series([0.1, None]),
        "number": pd.Series([7, pd.NA]),
        "local": np.array(["2024-01-01T10:00", "NaT"], "datetime64[s]"),
        "at": pd.Series([pd.Timestamp(AT), pd.NaT]),
        "list": pd.Series([np.array([1, 2]), None]),
    },
    # pandas has NaN for the nulls of these two.
    "records of pandas": lambda: [
        row | {name: COLUMNS[name][number] for name in ("share", "name")}
        for number, row in enumerate(pandas_frame().to_dict("records"))
    ],
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_gives_the_same_rows(written: WrittenTables, name: str) -> None:
    table = written.create(EVERY_COLUMN)
    assert insert_data(written.session, table, FRAMES[name]()).rows == 2
    assert written.rows(table) == EXPECTED


def test_nan_is_null_where_the_library_has_no_other_null(written: WrittenTables) -> None:
    for data, expected in (
        (pd.DataFrame({"x": [1.5, np.nan]}), [1.5, None]),
        (pl.DataFrame({"x": [1.5, None, float("nan")]}), [1.5, None, math.nan]),
        (pa.table({"x": [1.5, None, math.nan]}), [1.5, None, math.nan]),
        ([{"x": math.nan}], [math.nan]),
    ):
        table = written.create("columns: [{name: x, type: double}]")
        insert_data(written.session, table, data)
        found = [row["x"] for row in written.static(table).scan().to_arrow().to_pylist()]
        assert list(map(str, found)) == list(map(str, expected))


ONE_COLUMN: dict[str, tuple[str, Any, Any]] = {
    "whole floats": ("long", pd.DataFrame({"x": [1.0, None]}), 1),
    "a category of numbers": ("long", pd.DataFrame({"x": pd.Categorical([1, None])}), 1),
    "nulls alone": ("struct<a: int>", pd.DataFrame({"x": [None, None]}), None),
    "half floats": ("float", pd.DataFrame({"x": np.array([1.5, np.nan], "float16")}), 1.5),
    "a decimal of 256 bits": (
        "decimal(10,2)",
        pa.table({"x": pa.array([Decimal("1.5"), None], pa.decimal256(30, 2))}),
        Decimal("1.50"),
    ),
    "an array": (
        "list<int>",
        pl.DataFrame({"x": pl.Series([[1, 2], None], dtype=pl.Array(pl.Int32, 2))}),
        [1, 2],
    ),
    "an enumeration": ("string", pl.DataFrame({"x": pl.Series(["a", None], dtype=pl.Enum(["a"]))}), "a"),
    "floats of a list": ("list<float>", pl.DataFrame({"x": [[0.1], None]}), [float(np.float32(0.1))]),
    "texts of days in a struct": (
        "struct<a: date>",
        pa.table({"x": [{"a": "2024-1-2"}, None]}),
        {"a": date(2024, 1, 2)},
    ),
    "a struct without a field": (
        "struct<a: int, b: int>",
        pl.DataFrame({"x": [{"b": 1}, None]}),
        {"a": None, "b": 1},
    ),
}


@pytest.mark.parametrize("name", ONE_COLUMN)
def test_values_that_fit_are_cast(written: WrittenTables, name: str) -> None:
    type_, data, expected = ONE_COLUMN[name]
    table = written.create(f'columns: [{{name: x, type: "{type_}"}}]')
    assert insert_data(written.session, table, data).rows == 2
    assert sorted(written.rows(table), key=str) == sorted([(expected,), (None,)], key=str)


ZONED = pd.Timestamp("2024-01-01 10:00", tz="Europe/Berlin")
BAD_ROW = {
    "half a number": ("long", pd.DataFrame({"x": [1.0, 1.5]})),
    "a large number": ("long", pd.DataFrame({"x": np.array([0, 2**64 - 1], "uint64")})),
    "a long decimal": ("decimal(10,2)", pd.DataFrame({"x": [Decimal("1.5"), Decimal("1.555")]})),
    "nanoseconds": ("timestamp", pd.DataFrame({"x": pd.to_datetime([0, 123_456_789])})),
    "nanoseconds of a row": ("timestamp", [{"x": None}, {"x": pd.Timestamp(1)}]),
    "a time as a day": (
        "date",
        pd.DataFrame({"x": pd.to_datetime(["2024-01-01 00:00", "2024-01-01 10:00"])}),
    ),
    "half a number in a list": ("list<int>", pl.DataFrame({"x": [[1.0], [2.0, 1.5]]})),
    "a long decimal in a struct": (
        "struct<a: decimal(5,1)>",
        pl.DataFrame({"x": [None, {"a": Decimal("1.25")}]}),
    ),
    "half a number in a map": (
        "map<string, int>",
        pa.table({"x": pa.array([[], [("a", 1.5)]], pa.map_(pa.string(), pa.float64()))}),
    ),
    "a text that is no number in a struct": ("struct<a: int>", pa.table({"x": [{"a": "1"}, {"a": "z"}]})),
    "NaN of a row": ("long", [{"x": 1}, {"x": float("nan")}]),
}


@pytest.mark.parametrize("name", BAD_ROW)
def test_a_value_that_a_cast_would_change_is_a_bad_row(written: WrittenTables, name: str) -> None:
    type_, data = BAD_ROW[name]
    table = written.create(f'columns: [{{name: x, type: "{type_}"}}]')
    with pytest.raises(Mistakes) as error:
        insert_data(written.session, table, data)
    (found,) = error.value.diagnostics
    assert found.message.startswith("row 2: column `x`")
    assert (written.snapshots(table), written.data_files(table)) == ([], set())


REFUSED: dict[str, tuple[str, Any, str]] = {
    "a zone": (
        "timestamp",
        pd.DataFrame({"x": [ZONED]}),
        "`x` has a time zone, and that of the table has none",
    ),
    "a zone in a list": (
        "list<timestamp>",
        pl.DataFrame({"x": [[AT]]}),
        "`x.element` has a time zone, and that of the table has none",
    ),
    "dicts for a map": (
        "map<string, int>",
        pd.DataFrame({"x": [{"a": 1}, {"b": 2}]}),
        "`x` has a struct, and the table has a map",
    ),
    "a further field": (
        "struct<a: int>",
        pl.DataFrame({"x": [{"a": 1, "b": 2}]}),
        "`x` has a field `b`, and that of the table has none",
    ),
    "a struct for a text": (
        "string",
        pl.DataFrame({"x": [{"a": 1}]}),
        "has a struct, and the table has the type",
    ),
    "mixed values": ("string", pd.DataFrame({"x": ["a", 1]}), "Conversion failed for column x"),
    "a period": ("string", pd.DataFrame({"x": pd.period_range("2024", periods=1)}), "has the type extension"),
    "objects": ("binary", pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)}), "has Python objects"),
    "columns twice": ("long", pd.DataFrame([[1, 2]], columns=["x", "x"]), "column `x` is there twice"),
    "nanoseconds of a zone in a view": (
        "list<timestamptz_ns>",
        pa.table({"x": pa.array([[1]], pa.list_view(pa.timestamp("ns", "UTC")))}),
        "which Arrow cannot convert",
    ),
    "nanoseconds of a zone in a large view": (
        "list<timestamptz_ns>",
        pa.table({"x": pa.array([[1]], pa.large_list_view(pa.timestamp("ns", "UTC")))}),
        "which Arrow cannot convert",
    ),
    "nanoseconds of a zone in runs": (
        "timestamptz_ns",
        pa.table({"x": pa.RunEndEncodedArray.from_arrays([1], pa.array([1], pa.timestamp("ns", "UTC")))}),
        "which Arrow cannot convert",
    ),
    "Arrow arrays of other lengths": (
        "long",
        {"x": pa.array([1, 2]), "y": pa.array([1])},
        "different numbers of rows: `x` has 2, `y` has 1",
    ),
    "a frame of Spark Connect 3.5": ("long", spark_frame(), "before Spark 4 gives no Arrow data"),
    "columns of Arrow twice": (
        "long",
        pa.table([[1], [2]], names=["x", "x"]),
        "the data: column `x` is there twice",
    ),
    "columns of a reader twice": (
        "long",
        pa.table([[1], [2]], names=["x", "x"]).to_reader(),
        "the data: column `x` is there twice",
    ),
    "names of numbers": ("long", pd.DataFrame([[1]]), "has no column `0`"),
    "one column of pandas": ("long", pd.Series([1], name="x"), "rows cannot be read from a Series"),
    "one column of Polars": ("long", pl.Series("x", [1]), "rows cannot be read from a Series"),
    "an array": ("long", np.array([1]), "rows cannot be read from a ndarray"),
    "a lazy frame that fails": ("long", pl.LazyFrame({"x": [1]}).select("y"), "the LazyFrame cannot be read"),
    "a relation that fails": ("long", duckdb.sql("SELECT error('no')::INT AS x"), "cannot be read: .*no"),
    "columns of other lengths": (
        "long",
        {"x": [1, 2], "y": [1]},
        "different numbers of rows: `x` has 2, `y` has 1",
    ),
    "a decimal that is too long": (
        "decimal(10,2)",
        pa.table({"x": pa.array([Decimal("1.5")], pa.decimal256(60, 2))}),
        "has the type decimal256",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_data_that_no_value_can_come_from_is_one_error(written: WrittenTables, name: str) -> None:
    type_, data, message = REFUSED[name]
    table = written.create(
        f'format_version: 3\ncolumns: [{{name: x, type: "{type_}"}}, {{name: y, type: int}}]'
    )
    with pytest.raises(UsageError, match=message):
        insert_data(written.session, table, data)
    assert (written.snapshots(table), written.data_files(table)) == ([], set())


SPARK_ROWS = pa.table({"x": [1, 2], "to_spark": [3, None]})
SPARK_FRAMES: dict[str, tuple[Any, int]] = {
    "Spark 4": (spark_frame(toArrow=lambda _: SPARK_ROWS), 2),
    "Spark 3.5": (spark_frame(_collect_as_arrow=lambda _: SPARK_ROWS.to_batches()), 2),
    "Spark 3.5 without rows": (spark_frame(_collect_as_arrow=lambda _: []), 0),
    "pandas on Spark": (
        type(
            "DataFrame",
            (),
            {
                "__module__": "pyspark.pandas.frame",
                "to_spark": lambda _: spark_frame(toArrow=lambda _: SPARK_ROWS),
            },
        )(),
        2,
    ),
}


@pytest.mark.parametrize("name", SPARK_FRAMES)
def test_frames_of_each_spark_give_rows(written: WrittenTables, name: str) -> None:
    data, count = SPARK_FRAMES[name]
    table = written.create("columns: [{name: x, type: long}, {name: to_spark, type: long}]")
    assert insert_data(written.session, table, data).rows == count


FINE = "1970-01-01T00:00:00.000000001"
ONE_ROW: dict[str, tuple[Any, dict[str, Any]]] = {
    "a scalar of NumPy": ({"x": np.int64(1)}, {}),
    "an array without a dimension": ({"x": np.array(1)}, {}),
    "a scalar of Arrow": ({"x": pa.scalar(1)}, {}),
    "a scalar beside a column": ({"x": np.int64(1), "l": [5]}, {"l": [5]}),
    "an Arrow array in a row": ([{"x": 1, "l": pa.array([5])}], {"l": [5]}),
    "an Arrow array": ({"x": pa.array([1])}, {}),
    "a chunked Arrow array": ({"x": pa.chunked_array([[1]])}, {}),
    "an Arrow array beside a list": ({"x": pa.array([1]), "l": [[5]]}, {"l": [5]}),
    "masked values": ({"x": np.ma.array([1], mask=[False]), "l": np.ma.array([0], mask=[True])}, {}),
    "masked": ({"x": 1, "l": np.ma.masked}, {}),
    "a map of Arrow": (
        [{"x": 1, "m": pa.scalar([("a", 1)], pa.map_(pa.string(), pa.int64()))}],
        {"m": [("a", 1)]},
    ),
    "nanoseconds of Arrow": ([{"x": 1, "at": pa.scalar(1, pa.timestamp("ns"))}], {"at": 1}),
    "nanoseconds of a zone of Arrow": (
        {"x": [1], "zoned": pa.array([1], pa.timestamp("ns", "Europe/Berlin"))},
        {"zoned": 1},
    ),
    "a time without a dimension": ([{"x": 1, "at": np.array(FINE, "datetime64[ns]")}], {"at": 1}),
}


@pytest.mark.parametrize("name", ONE_ROW)
def test_scalars_and_arrays_of_libraries_are_values(written: WrittenTables, name: str) -> None:
    table = written.create("""
format_version: 3
columns:
  - {name: x, type: long}
  - {name: l, type: "list<int>"}
  - {name: m, type: "map<string, long>"}
  - {name: at, type: timestamp_ns}
  - {name: zoned, type: timestamptz_ns}
""")
    data, expected = ONE_ROW[name]
    assert insert_data(written.session, table, data).rows == 1
    (path,) = written.data_files(table)
    found = pa.parquet.read_table(path)
    for time_column in {"at", "zoned"} & set(found.column_names):
        number = found.column_names.index(time_column)
        found = found.set_column(number, time_column, found[time_column].cast(pa.int64()))
    assert {key: value for key, value in found.to_pylist()[0].items() if value is not None} == {
        "x": 1,
        **expected,
    }


def test_a_mapping_of_lists_is_one_row_where_all_its_columns_are_lists(written: WrittenTables) -> None:
    table = written.create('columns: [{name: x, type: "list<int>"}, {name: y, type: int}]')
    insert_data(written.session, table, {"x": [1, 2]})
    insert_data(written.session, table, {"x": [3], "y": 4})
    insert_data(written.session, table, {"x": [[5], [6, 7]], "y": (8, 9)})
    assert written.rows(table) == [([1, 2], None), ([3], 4), ([5], 8), ([6, 7], 9)]


def test_fine_times_keep_their_digits_below_structs(written: WrittenTables) -> None:
    type_ = '"struct<a: timestamptz_ns, b: list<timestamptz_ns>>"'
    table = written.create(f"format_version: 3\ncolumns: [{{name: x, type: {type_}}}]")
    fine = pa.timestamp("ns", "Europe/Berlin")
    inner = pa.struct([("a", fine), ("b", pa.list_(fine))])
    insert_data(written.session, table, pa.table({"x": pa.array([{"a": 123456789, "b": [1]}], inner)}))
    (path,) = written.data_files(table)
    found = pa.parquet.read_table(path)["x"].combine_chunks()
    assert found.field("a").cast(pa.int64()).to_pylist() == [123456789]
    assert found.field("b").flatten().cast(pa.int64()).to_pylist() == [1]


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_are_upserted(written: WrittenTables, library: Any) -> None:
    table = written.create("columns: [{name: id, type: long, required: true}, {name: name, type: string}]")
    insert_data(written.session, table, library.DataFrame({"id": [1, 2], "name": ["a", "b"]}))
    done = upsert(written.session, table, library.DataFrame({"name": ["c", None], "id": [2, 3]}), ["id"])
    assert (done.updated, done.inserted) == (1, 1)
    assert written.rows(table) == [(1, "a"), (2, "c"), (3, None)]
    with pytest.raises(IcemigrateError, match="have the same key"):
        upsert(written.session, table, library.DataFrame({"id": [5, 5], "name": ["a", "b"]}), ["id"])
