"""Rows in partitions: their values, what manifests say about them, and the order within files."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from itertools import product
from operator import eq, ge, le
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, LessThanOrEqual

from icemigrate.errors import Mistakes, UsageError
from icemigrate.table_data.file_adoption import adopt_files
from icemigrate.table_data.insert_rows import insert_data, insert_files
from icemigrate.table_data.query_tables import query_table
from icemigrate.table_data.row_changes import delete_data, update_data
from icemigrate.table_data.upsert_rows import upsert
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

VALUES: dict[str, list[Any]] = {
    "int": [-7, 0, 3, None, 1_000_000],
    "long": [-(2**40), -1, 0, 5, None],
    "string": ["", "ab", "äöüß", "a/b=c", None],
    "date": [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), None, date(1600, 1, 1)],
    "timestamp": [
        *("1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2024-02-29 12:30:00"),
        *(None, "1600-01-01 00:00:00"),
    ],
    "timestamptz": ["1969-12-31 23:59:59.999999+00:00", "2024-02-29 12:30:00+05:00", None],
    "decimal(9,2)": ["-12.34", "0.00", "99.99", None],
    "boolean": [True, False, None],
    "binary": ["00ff", "", None],
    "uuid": ["f79c3e09-677c-4bbd-a479-3f349cb785e7", None],
}  # fmt: skip
TRANSFORMS = {
    "int": ["{x}", "bucket(4, {x})", "truncate(10, {x})"],
    "long": ["{x}", "bucket(4, {x})", "truncate(10, {x})"],
    "string": ["{x}", "bucket(4, {x})", "truncate(2, {x})"],
    "date": ["{x}", "bucket(4, {x})", "year({x})", "month({x})", "day({x})"],
    "timestamp": ["{x}", "bucket(4, {x})", "year({x})", "month({x})", "day({x})", "hour({x})"],
    "timestamptz": ["{x}", "bucket(4, {x})", "year({x})", "month({x})", "day({x})", "hour({x})"],
    "decimal(9,2)": ["{x}", "bucket(4, {x})"],
    "boolean": ["{x}"],
    "binary": ["{x}", "truncate(1, {x})"],
    "uuid": ["{x}"],
}
CASES = [(kind, term.format(x="x")) for kind, terms in TRANSFORMS.items() for term in terms]


def plain(value: Any) -> Any:
    return (
        bytes(value) if isinstance(value, (bytes, bytearray)) else str(value) if value is not None else None
    )


@pytest.mark.parametrize(("kind", "term"), CASES)
def test_partitions_are_those_that_pyiceberg_computes(written: WrittenTables, kind: str, term: str) -> None:
    name = written.create(
        f"columns: [{{name: n, type: int}}, {{name: x, type: {kind!r}}}]\npartition_by: ['{term}']"
    )
    rows = [{"n": number, "x": value} for number, value in enumerate(VALUES[kind])]
    done = insert_data(written.session, name, rows)
    table = written.static(name)
    files = [task.file for task in table.scan().plan_files()]
    assert sum(file.record_count for file in files) == done.rows == len(rows)
    assert len(files) == done.files == len({plain(file.partition[0]) for file in files})
    (manifest,) = table.current_snapshot().manifests(table.io)  # type: ignore[union-attr]
    (summary,) = manifest.partitions or ()
    assert summary.contains_null == any(file.partition[0] is None for file in files)
    (field,) = table.spec().fields
    source = table.schema().find_type(field.source_id)
    for file in files:
        values = pq.read_table(file.file_path.removeprefix("file://"), partitioning=None)["x"]
        if kind not in ("uuid", "binary"):
            computed = field.transform.pyarrow_transform(source)(values.combine_chunks()).to_pylist()
            assert {stored(value) for value in computed} == {stored(file.partition[0])}
    for number, value in enumerate(VALUES[kind]):
        if value is None or kind in ("binary", "uuid"):
            continue
        found = table.scan(row_filter=f"x == {literal(value)}").to_arrow()["n"].to_pylist()
        assert found == [number], f"{value} is pruned"


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, Decimal)):
        return str(value)
    text = str(value).replace(" ", "T") if ":" in str(value) else str(value)
    return f"'{text}'"


def stored(value: Any) -> Any:
    """A value in the form of a manifest: numbers since 1970."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def test_rows_are_sorted_by_the_order_of_the_table(written: WrittenTables) -> None:
    name = written.create(
        "columns: [{name: k, type: string}, {name: x, type: int}]\nsort_by: [k, 'x desc nulls last']"
    )
    data = pa.table({"k": ["b", "a", None, "a", "b"] * 100, "x": [1, None, 3, 4, 5] * 100})
    insert_data(written.session, name, data)
    (path,) = written.data_files(name)
    rows = pq.read_table(path).to_pylist()
    wanted = sorted(rows, key=lambda r: (r["k"] is not None, r["k"] or "", r["x"] is None, -(r["x"] or 0)))
    assert rows == wanted
    (task,) = written.static(name).scan().plan_files()
    assert task.file.sort_order_id == 1


def test_partitioned_files_are_sorted_too(written: WrittenTables) -> None:
    name = written.create(
        "columns: [{name: k, type: string}, {name: x, type: int}]\npartition_by: [k]\nsort_by: [x]"
    )
    insert_data(written.session, name, pa.table({"k": ["a", "b"] * 500, "x": list(range(1000, 0, -1))}))
    for path in written.data_files(name):
        found = pq.read_table(path)["x"].to_pylist()
        assert found == sorted(found)
        assert len(found) == 500


@pytest.mark.parametrize("layout", ["", "\npartition_by: [part]"], ids=["plain", "parts"])
@pytest.mark.parametrize("term", ["k", "truncate(1, k)"])
def test_changed_rows_are_sorted_by_their_new_values(written: WrittenTables, layout: str, term: str) -> None:
    name = written.create(
        "columns: [{name: id, type: int}, {name: k, type: string}, {name: part, type: int}]\n"
        f"sort_by: ['{term}']{layout}"
    )
    session = written.session
    letters = [chr(ord("a") + number) for number in range(20)]
    insert_data(session, name, pa.table({"id": list(range(20)), "k": letters, "part": [1] * 20}))
    update_data(session, name, {"k": "chr(219 - ascii(k))"}, "true")
    check_order(written, name, 20)
    data = pa.table({"id": [25, 3, 21, 10], "k": ["b", "z", "q", "a"], "part": [1] * 4})
    done = upsert(session, name, data, ["id"])
    assert (done.inserted, done.updated) == (2, 2)
    check_order(written, name, 22)


def check_order(written: WrittenTables, name: str, count: int) -> None:
    tasks = list(written.static(name).scan().plan_files())
    keys = [pq.read_table(t.file.file_path.removeprefix("file://"))["k"].to_pylist() for t in tasks]
    assert sum(map(len, keys)) == count
    assert all(found == sorted(found) for found in keys)
    assert {task.file.sort_order_id for task in tasks} == {1}


@pytest.mark.parametrize("kind", [None, *VALUES])
def test_a_change_counts_each_partition_once(written: WrittenTables, kind: str | None) -> None:
    layout = "" if kind is None else "\npartition_by: [x]"
    name = written.create(f"columns: [{{name: n, type: int}}, {{name: x, type: {kind or 'int'!r}}}]{layout}")
    rows = [{"n": number, "x": value} for number, value in enumerate(VALUES[kind or "int"])]
    insert_data(written.session, name, rows)

    def changed() -> str:
        summary = written.snapshots(name)[-1]["summary"]
        return str(summary["changed-partition-count"])

    assert changed() == str(len(rows) if kind else 1)
    update_data(written.session, name, {"n": "n + 100"}, "n = 1")
    assert changed() == "1"
    update_data(written.session, name, {"x": "NULL"}, "n = 0")
    assert changed() == ("2" if kind else "1")
    delete_data(written.session, name, "n = 101")
    assert changed() == "1"


def test_files_of_a_manifest_without_summaries_are_found(written: WrittenTables) -> None:
    name = written.create("columns: [{name: n, type: int}, {name: k, type: string}]\npartition_by: [k]")
    insert_data(written.session, name, pa.table({"n": [1, 2, 3], "k": ["a", "b", "c"]}))
    listed = written.snapshots(name)[-1]["manifest-list"].removeprefix("file://")
    with Path(listed).open("rb") as stream:
        reader = fastavro.reader(stream)
        records, schema = [{**record, "partitions": None} for record in reader], reader.writer_schema
    with Path(listed).open("wb") as stream:
        fastavro.writer(stream, schema, records)
    delete_data(written.session, name, "k = 'a'")
    table = written.static(name)
    (manifest,) = table.current_snapshot().manifests(table.io)  # type: ignore[union-attr]
    assert manifest.partitions is None
    assert table.scan(row_filter="k == 'b'").to_arrow()["n"].to_pylist() == [2]
    assert query_table(written.session, name, "k = 'c'")["n"].to_pylist() == [3]


FARTHEST: dict[str, tuple[int, int]] = {
    "date": (-2_147_483_646, 2_147_483_646),
    "timestamp": (-9_223_372_022_400_000_000, 9_223_372_036_854_775_806),
    "timestamptz": (-9_223_372_022_400_000_000, 9_223_372_036_854_775_806),
}
"""The first and the last value that DuckDB does not take for an infinity, in days or microseconds."""
FIRST_HOUR, LAST_HOUR = (hour * 3_600_000_000 for hour in (-(2**31), 2**31 - 1))
FAR_CASES = [(k, t) for k, terms in TRANSFORMS.items() if k in FARTHEST for t in terms if "bucket" not in t]


@pytest.mark.parametrize(("kind", "term"), FAR_CASES)
def test_rows_of_years_that_python_lacks_change(written: WrittenTables, kind: str, term: str) -> None:
    term = term.format(x="x")
    name = written.create(
        f"columns: [{{name: n, type: int}}, {{name: x, type: {kind}}}]\npartition_by: ['{term}']"
    )
    first, last = FARTHEST[kind]
    if term == "hour(x)":
        first, last = -LAST_HOUR, LAST_HOUR
    arrow = {"date": pa.date32(), "timestamp": pa.timestamp("us")}.get(kind, pa.timestamp("us", "UTC"))
    numbers = pa.int32() if kind == "date" else pa.int64()

    def rows(ns: list[int], xs: list[int]) -> pa.Table:
        return pa.table({"n": pa.array(ns, pa.int32()), "x": pa.array(xs, numbers).cast(arrow)})

    def found() -> dict[int, int]:
        tables = [
            pq.read_table(task.file.file_path.removeprefix("file://"), partitioning=None)
            for task in written.static(name).scan().plan_files()
        ]
        together = pa.concat_tables(tables)
        return dict(zip(together["n"].to_pylist(), together["x"].cast(numbers).to_pylist(), strict=True))

    insert_data(written.session, name, rows([1, 2, 3], [first, 0, last]))
    assert update_data(written.session, name, {"n": "n + 10"}, "n <> 2").updated == 2
    assert upsert(written.session, name, rows([2, 4], [last, first]), ["n"]).updated == 1
    assert found() == {11: first, 2: last, 13: last, 4: first}
    assert delete_data(written.session, name, "n = 11").deleted == 1
    assert found() == {2: last, 13: last, 4: first}


@pytest.mark.parametrize(
    ("kind", "arrow", "number"),
    [
        ("date", pa.date32(), 2**31 - 1),
        ("date", pa.date32(), 1 - 2**31),
        ("timestamp", pa.timestamp("us"), 2**63 - 1),
        ("timestamptz", pa.timestamp("us", "UTC"), 1 - 2**63),
        ("time", pa.time64("us"), 86_400_000_000),
    ],
)
def test_a_value_that_iceberg_or_duckdb_lacks_is_refused(
    written: WrittenTables, kind: str, arrow: pa.DataType, number: int
) -> None:
    name = written.create(f"columns: [{{name: n, type: int}}, {{name: x, type: {kind}}}]\npartition_by: [x]")
    whole = pa.int32() if kind == "date" else pa.int64()
    data = pa.table({"n": pa.array([1, 2], pa.int32()), "x": pa.array([0, number], whole).cast(arrow)})
    with pytest.raises(Mistakes, match="row does not fit"):
        insert_data(written.session, name, data)
    insert_data(written.session, name, data.slice(0, 1))
    literal_text = "24:00:00" if kind == "time" else "infinity"
    with pytest.raises(UsageError, match=r"column `x` .* cannot have the value"):
        update_data(written.session, name, {"x": f"CAST('{literal_text}' AS {kind})"}, "true")
    with pytest.raises(Mistakes, match="row does not fit"):
        insert_data(written.session, name, [{"n": 1, "x": literal_text}])


@pytest.mark.parametrize(
    ("kind", "width", "smallest"),
    [("int", 10, -(2**31)), ("int", 2**31 - 1, -(2**31)), ("long", 7, -(2**63)), ("decimal(2,0)", 10, -99)],
)
def test_a_number_without_a_truncated_start_is_refused(
    written: WrittenTables, kind: str, width: int, smallest: int
) -> None:
    columns = f"columns: [{{name: n, type: int}}, {{name: x, type: '{kind}'}}]"
    name = written.create(f"{columns}\npartition_by: ['truncate({width}, x)']")
    path = written.file("x.csv", f"n,x\n1,5\n2,{smallest}\n3,-5\n")
    with pytest.raises(Mistakes) as error:
        insert_files(written.session, name, [path])
    (diagnostic,) = error.value.diagnostics
    assert (
        f"x.csv:3:1: error: column `x` ({kind.replace(',', ', ')}) cannot have the value `{smallest}`: "
        in str(diagnostic)
    )
    assert "the partition field `x_trunc_" in str(diagnostic)
    insert_files(written.session, name, [written.file("fits.csv", "n,x\n1,5\n3,-5\n")])
    with pytest.raises(UsageError, match=rf"the partition field `x_trunc_.* has no value for {smallest}"):
        update_data(written.session, name, {"x": str(smallest)}, "n = 1")
    assert written.rows(name, "n") == [(1,), (3,)]
    ordered = written.create(f"{columns}\nsort_by: ['truncate({width}, x)']")
    insert_files(written.session, ordered, [path])
    assert written.rows(ordered, "n") == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("struct<a: date>", "{'a': '%s'::date}"),
        ("list<timestamptz>", "[now(), '%s'::timestamptz]"),
        ("map<string, timestamp>", "MAP {'k': '-%s'::timestamp}"),
        ("map<date, int>", "MAP {'%s'::date: 1}"),
        ("list<struct<a: list<date>>>", "[{'a': [NULL, '%s'::date]}]"),
    ],
)
def test_an_infinity_inside_a_value_is_refused(written: WrittenTables, kind: str, value: str) -> None:
    name = written.create(f"columns: [{{name: n, type: int}}, {{name: x, type: '{kind}'}}]")
    insert_data(written.session, name, [{"n": 1}])
    connection = duckdb.connect()
    with pytest.raises(Mistakes, match="row does not fit"):
        insert_data(written.session, name, connection.sql(f"SELECT 1::INT AS n, {value % 'infinity'} AS x"))
    with pytest.raises(UsageError, match="column `x` cannot have the value"):
        update_data(written.session, name, {"x": value % "infinity"}, "true")
    assert (
        update_data(written.session, name, {"x": value.replace("-", "") % "2026-01-31"}, "true").updated == 1
    )


NAMED = {
    "decimal(9,2)": ["1.50", "-0.25"],
    "uuid": [VALUES["uuid"][0], str(UUID(int=1))],
    "fixed[2]": ["00ff", "0100"],
}


@pytest.mark.parametrize("kind", [*VALUES, "fixed[2]"])
def test_two_partition_fields_have_one_type(written: WrittenTables, kind: str) -> None:
    name = written.create(
        f"columns: [{{name: n, type: int}}, {{name: x, type: {kind!r}}}, {{name: y, type: {kind!r}}}]\n"
        "partition_by: [x, y]"
    )
    x, y = NAMED.get(kind) or VALUES[kind][:2]
    insert_data(written.session, name, [{"n": 1, "x": x, "y": y}, {"n": 2, "x": y, "y": x}])
    files = {tuple(map(plain, task.file.partition)) for task in written.static(name).scan().plan_files()}
    assert len(files) == 2
    assert files == {pair[::-1] for pair in files}
    delete_data(written.session, name, "n = 1")
    assert query_table(written.session, name)["n"].to_pylist() == [2]


DECIMALS = ((9, 2), (19, 0), (38, 2))
EXTREMES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [-(2**31), 10 - 2**31, -1, 0, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 10 - 2**63, -1, 0, 2**63 - 1]),
    "string": (pa.string(), ["", "\r\n", "e\u0301x", "\uffffa", "\U0010ffff", "\U0010ffff\U0010ffff"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff", b"\xff\xff"]),
    **{
        f"decimal({precision},{scale})": (
            pa.decimal128(precision, scale),
            [
                Decimal(number).scaleb(-scale, Context(38))
                for number in (1 - 10**precision, 10 - 10**precision, -1, 0, 10**precision - 1)
            ],
        )
        for precision, scale in DECIMALS
    },
}
"""Values of each type near its limits.  The first one of numbers is in no partition."""
FILTERS = (("=", EqualTo, eq), ("<=", LessThanOrEqual, le), (">=", GreaterThanOrEqual, ge))


@pytest.mark.parametrize("kind", EXTREMES)
def test_each_filter_finds_extreme_values(written: WrittenTables, kind: str) -> None:
    name = written.create(
        f"columns: [{{name: n, type: int}}, {{name: x, type: {kind!r}}}]\n"
        + "partition_by: ['truncate(1, x)', 'truncate(10, x)', 'bucket(16, x)', x]"
    )
    type_, constants = EXTREMES[kind]
    values = constants[1:] if isinstance(constants[0], (int, Decimal)) else constants
    for number, value in enumerate(values):
        pq.write_table(
            pa.table({"n": pa.array([number], pa.int32()), "x": pa.array([value], type_)}),
            written.folder / f"{number}.parquet",
        )
    adopt_files(written.session, name, written.folder)
    table = written.static(name)
    for value, (sign, scan_filter, compare) in product(constants, FILTERS):
        wanted = [number for number, each in enumerate(values) if compare(each, value)]
        shown = "".join(f"\\x{byte:02x}" for byte in value) if isinstance(value, bytes) else value
        condition = f"x {sign} '{shown}'{'::BLOB' if isinstance(value, bytes) else ''}"
        found = query_table(written.session, name, condition)["n"].to_pylist()
        assert sorted(found) == wanted, condition
        scanned = table.scan(row_filter=scan_filter("x", value)).to_arrow()["n"].to_pylist()
        assert sorted(scanned) == wanted, f"{condition}, by PyIceberg"


@pytest.mark.parametrize(
    ("kind", "term"),
    [
        *(("timestamp", term) for term in ("year(x)", "month(x)", "day(x)", "hour(x)")),
        *(("timestamptz", term) for term in ("month(x)", "day(x)")),
        ("date", "month(x)"),
    ],
)
def test_each_filter_finds_times_before_1970(written: WrittenTables, kind: str, term: str) -> None:
    zone = "UTC" if kind == "timestamptz" else None
    name = written.create(
        f"columns: [{{name: n, type: int}}, {{name: x, type: {kind!r}}}]\npartition_by: [{term!r}]"
    )
    days = [datetime(1969, 12, 31), datetime(1960, 2, 29), datetime(2026, 1, 1), datetime(1, 1, 1)]
    times = [day if kind == "date" else day.replace(hour=12, minute=30, microsecond=1) for day in days]
    type_ = pa.date32() if kind == "date" else pa.timestamp("us", zone)
    insert_data(
        written.session, name, pa.table({"n": pa.array(range(4), pa.int32()), "x": pa.array(times, type_)})
    )
    for time, (sign, _, compare) in product(times, FILTERS):
        condition = f"x {sign} '{time:%Y-%m-%d %H:%M:%S.%f}{'+00' if zone else ''}'"
        if kind == "date":
            condition = f"x {sign} '{time:%Y-%m-%d}'"
        wanted = [number for number, each in enumerate(times) if compare(each, time)]
        assert sorted(query_table(written.session, name, condition)["n"].to_pylist()) == wanted, condition
    if kind != "date":
        assert update_data(written.session, name, {"n": "n"}, "x < '1969-12-31 13:00:00'").updated == 3


@pytest.mark.parametrize(
    ("kind", "term", "value"),
    [
        ("int", "truncate(10, x)", -(2**31)),
        ("long", "truncate(7, x)", -(2**63)),
        ("decimal(2,1)", "truncate(2147483647, x)", Decimal("-0.1")),
        ("timestamp", "hour(x)", LAST_HOUR + 3_600_000_000),
        ("timestamp", "hour(x)", FIRST_HOUR - 1),
    ],
)
def test_a_file_with_values_without_a_partition_is_not_adopted(
    written: WrittenTables, kind: str, term: str, value: Any
) -> None:
    name = written.create(f"columns: [{{name: x, type: {kind!r}}}]\npartition_by: [{term!r}]")
    types = {"int": pa.int32(), "long": pa.int64(), "timestamp": pa.int64()}
    array = pa.array([value], types.get(kind, pa.decimal128(2, 1)))
    pq.write_table(
        pa.table({"x": array.cast(pa.timestamp("us")) if kind == "timestamp" else array}),
        written.folder / "x.parquet",
    )
    with pytest.raises(Mistakes) as error:
        adopt_files(written.session, name, written.folder)
    (diagnostic,) = error.value.diagnostics
    assert "column `x` has values without a partition: the partition field `x_" in str(diagnostic)


@pytest.mark.parametrize("term", ["year(x)", "month(x)", "day(x)"])
def test_files_of_years_that_python_lacks_are_adopted(written: WrittenTables, term: str) -> None:
    name = written.create(f"columns: [{{name: x, type: date}}]\npartition_by: [{term!r}]")
    first, last = FARTHEST["date"]
    for number in (first, 0, last):
        days = pa.array([number], pa.int32()).cast(pa.date32())
        pq.write_table(pa.table({"x": days}), written.folder / f"{number}.parquet")
    adopt_files(written.session, name, written.folder)
    inserted = written.create(f"columns: [{{name: x, type: date}}]\npartition_by: [{term!r}]")
    insert_files(written.session, inserted, [str(path) for path in written.folder.iterdir()])
    adopted, wanted = (partitions(written, one) for one in (name, inserted))
    assert adopted == wanted
    assert len(adopted) == 3


def test_a_file_of_the_first_hour_is_adopted(written: WrittenTables) -> None:
    name = written.create("columns: [{name: x, type: timestamp}]\npartition_by: [hour(x)]")
    times = pa.array([FIRST_HOUR], pa.int64()).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"x": times}), written.folder / "x.parquet")
    adopt_files(written.session, name, written.folder)
    assert partitions(written, name) == {-(2**31)}


def partitions(written: WrittenTables, name: str) -> set[Any]:
    return {task.file.partition[0] for task in written.static(name).scan().plan_files()}
