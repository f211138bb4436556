"""Parquet files of rows, read by PyIceberg and DuckDB, and their metrics."""

from __future__ import annotations

import datetime as dt
import io
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from icemigrate.errors import EngineError, MissingExtra
from icemigrate.files.version_number import Version
from icemigrate.history.history_record import SCHEMA, HistoryRecord, RunOutcome
from icemigrate.iceberg.schema_json import field_to_json
from icemigrate.iceberg.types import Primitive
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.history_rows import write_rows
from icemigrate.metadata_engine.parquet_metrics import lower_bound, upper_bound
from tests.spark.duckdb_rows import duckdb_rows
from tests.support.metadata_tables import FolderTable

UTC = dt.timezone.utc


def read(table: FolderTable) -> list[dict[str, Any]]:
    """All rows, as PyIceberg reads them."""
    rows: list[dict[str, Any]] = (
        StaticTable.from_metadata(str(table.write_metadata())).scan().to_arrow().to_pylist()
    )
    return rows


def append(table: FolderTable, *rows: dict[str, Any]) -> DataFile:
    file = write_rows(table.metadata, table.files, rows)
    table.append(file)
    return file


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_of_the_history_are_read_by_others(tmp_path: Path, version: int) -> None:
    columns = tuple(field_to_json(field) for field in SCHEMA.fields)
    table = FolderTable(tmp_path / "t", version, columns)
    record = HistoryRecord(
        version=Version(1, "0001"),
        description="Create “events”",
        checksum="c",
        project="p",
        environment="e",
        outcome=RunOutcome.APPLIED,
        started_at=dt.datetime(2026, 3, 2, 9, 0, 0, 123456, dt.timezone(dt.timedelta(hours=2))),
        finished_at=None,
        user="ann",
        host="h",
        tool_version="1",
        tables=("demo.events", "demo.users"),
        statements=("CREATE TABLE " + "x" * 5000,),
    )
    expected = {**record.row(), "started_at": record.started_at.astimezone(UTC)}
    append(table, record.row(), {**record.row(), "tables": []})
    append(table, record.row())
    assert read(table) == [expected, expected, {**expected, "tables": []}]
    path = table.write_metadata()
    query = (
        f"SELECT version, description, tables, len(statements[1]) FROM iceberg_scan('{path}') ORDER BY tables"
    )
    (found,) = duckdb_rows([(query, ())])
    assert found == [
        [1, "Create “events”", tables, 5013] for tables in ([], list(record.tables), list(record.tables))
    ]


MICROS = 1_767_225_600_123_456
AT = dt.datetime(2026, 1, 1, 0, 0, 0, 123456)

TYPES = [
    ("boolean", True, True, b"\x01"),
    ("int", -2, -2, b"\xfe\xff\xff\xff"),
    ("long", 2**62, 2**62, bytes(7) + b"\x40"),
    ("float", 1.5, 1.5, b"\x00\x00\xc0\x3f"),
    ("double", 3, 3.0, bytes(6) + b"\x08\x40"),
    ("date", "1970-01-03", dt.date(1970, 1, 3), b"\x02\x00\x00\x00"),
    ("date", dt.date(1969, 12, 31), dt.date(1969, 12, 31), b"\xff\xff\xff\xff"),
    ("time", "00:00:01.500", dt.time(0, 0, 1, 500_000), (1_500_000).to_bytes(8, "little")),
    ("timestamp", "2026-01-01T00:00:00.123456", AT, MICROS.to_bytes(8, "little")),
    ("timestamptz", "2026-01-01T02:00:00.123456+0200", AT.replace(tzinfo=UTC), MICROS.to_bytes(8, "little")),
    ("timestamptz", AT.replace(tzinfo=UTC), AT.replace(tzinfo=UTC), MICROS.to_bytes(8, "little")),
    ("string", "é" * 16, "é" * 16, ("é" * 16).encode()),
    ("uuid", str(UUID(int=5)), UUID(int=5), bytes(15) + b"\x05"),
    ("binary", "00ff", b"\x00\xff", b"\x00\xff"),
    ("binary", b"ab", b"ab", b"ab"),
    ("fixed[3]", "010203", b"\x01\x02\x03", b"\x01\x02\x03"),
    ("decimal(9, 2)", "14.20", Decimal("14.20"), b"\x05\x8c"),
    ("decimal(18, 3)", Decimal("-1"), Decimal("-1.000"), b"\xfc\x18"),
    ("decimal(38, 0)", 128, Decimal(128), b"\x00\x80"),
    ("decimal(38, 0)", 10**38 - 1, Decimal(10**38 - 1), (10**38 - 1).to_bytes(16, "big")),
]


@pytest.mark.parametrize(("type_", "given", "expected", "bound"), TYPES)
def test_every_primitive_type_is_written(
    tmp_path: Path, type_: str, given: Any, expected: Any, bound: bytes
) -> None:
    table = FolderTable(tmp_path / "t", 2, ({"id": 7, "name": "x", "type": type_},))
    file = append(table, {"x": given}, {"x": None}, {})
    (found, *others) = (row["x"] for row in read(table))
    assert others == [None, None]
    assert (UUID(bytes=found) if type_ == "uuid" and isinstance(found, bytes) else found) == expected
    assert (file.lower_bounds, file.upper_bounds) == ({7: bound}, {7: bound})
    assert (file.records, file.value_counts, file.null_counts) == (3, {7: 3}, {7: 2})
    assert file.nan_counts == ({7: 0} if type_ in ("float", "double") else {})


def parquet(file: DataFile) -> Any:
    return pq.ParquetFile(io.BytesIO(Path(file.path).read_bytes()))


def test_a_file_is_one_row_group_under_the_table_s_field_ids(tmp_path: Path) -> None:
    table = FolderTable(tmp_path / "t", 2)
    file = append(table, {"id": 1, "region": "a"}, {"id": 2})
    content = parquet(file)
    assert [content.schema.column(i).name for i in range(2)] == ["id", "region"]
    assert "field_id=2 region (String)" in str(content.schema)
    assert content.metadata.num_row_groups == 1
    assert content.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.split_offsets == (4,)
    assert file.size == len(Path(file.path).read_bytes())
    assert set(file.column_sizes) == {1, 2}


def test_nanoseconds_are_written(tmp_path: Path) -> None:
    columns = (
        {"id": 1, "name": "a", "type": "timestamp_ns"},
        {"id": 2, "name": "b", "type": "timestamptz_ns"},
    )
    table = FolderTable(tmp_path / "t", 3, columns)
    row = {"a": "1970-01-01 00:00:01.000000001", "b": dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)}
    file = write_rows(table.metadata, table.files, [row])
    assert file.lower_bounds == {
        1: (1_000_000_001).to_bytes(8, "little"),
        2: (2_000_000_000).to_bytes(8, "little"),
    }


NESTED = (
    {
        "id": 1,
        "name": "s",
        "type": {
            "type": "struct",
            "fields": [
                {"id": 2, "name": "x", "type": "double", "required": False},
                {"id": 3, "name": "l", "required": False}
                | {"type": {"type": "list", "element-id": 4, "element": "int", "element-required": True}},
            ],
        },
    },
    {
        "id": 5,
        "name": "m",
        "type": {
            **{"type": "map", "key-id": 6, "key": "string", "value-id": 7, "value-required": False},
            "value": {
                "type": "struct",
                "fields": [{"id": 8, "name": "y", "type": "date", "required": False}],
            },
        },
    },
)


def test_nested_types_are_written_and_repeated_values_have_no_bounds(tmp_path: Path) -> None:
    table = FolderTable(tmp_path / "t", 2, NESTED)
    nan = float("nan")
    rows = [
        {"s": {"x": 1.0, "l": [1, 2]}, "m": {"k": {"y": "2026-01-01"}, "n": None}},
        {"s": {"x": nan}, "m": {}},
        {"s": {"l": []}},
        {},
    ]
    file = append(table, *rows)
    assert len(read(table)) == 4
    stored = parquet(file).read().to_pylist()
    assert [row["s"] for row in stored][2:] == [{"x": None, "l": []}, None]
    # PyIceberg reads a map that is null as an empty one.
    assert [row["m"] for row in stored] == [[("k", {"y": dt.date(2026, 1, 1)}), ("n", None)], [], None, None]
    assert file.column_sizes.keys() == {2, 4, 6, 8}
    assert (file.value_counts, file.null_counts, file.nan_counts) == ({2: 4}, {2: 2}, {2: 1})
    one = bytes(6) + b"\xf0\x3f"
    assert (file.lower_bounds, file.upper_bounds) == ({2: one}, {2: one})


def test_columns_without_simple_values_are_left_out(tmp_path: Path) -> None:
    columns = (
        {"id": 1, "name": "id", "type": "long"},
        {"id": 2, "name": "u", "type": "unknown"},
        {"id": 3, "name": "v", "type": "variant"},
        {"id": 4, "name": "g", "type": "geometry"},
        {"id": 5, "name": "l"}
        | {"type": {"type": "list", "element-id": 6, "element": "variant", "element-required": False}},
        {
            **{"id": 7, "name": "s"},
            "type": {
                "type": "struct",
                "fields": [
                    {"id": 8, "name": "v", "type": "variant", "required": False},
                    {"id": 9, "name": "x", "type": "int", "required": False},
                ],
            },
        },
    )
    table = FolderTable(tmp_path / "t", 3, columns)
    file = append(table, {"id": 1, "u": None, "s": {"x": 2}})
    assert parquet(file).read().to_pylist() == [{"id": 1, "s": {"x": 2}}]
    for name, value in (("v", 1), ("g", b""), ("l", [])):
        with pytest.raises(EngineError, match=f"`{name}`.*no values of its type are written"):
            write_rows(table.metadata, table.files, [{name: value}])


def test_a_column_that_a_row_lacks_has_its_write_default(tmp_path: Path) -> None:
    defaults = {"initial-default": "2020-01-01", "write-default": "2026-01-01"}
    column = {"id": 2, "name": "d", "type": "date", "required": True, **defaults}
    table = FolderTable(tmp_path / "t", 3, ({"id": 1, "name": "id", "type": "long"}, column))
    file = append(table, {"id": 1}, {"id": 2, "d": "1970-01-01"})
    rows = parquet(file).read().to_pylist()
    assert [row["d"] for row in rows] == [dt.date(2026, 1, 1), dt.date(1970, 1, 1)]


@pytest.mark.parametrize(
    ("library", "has_list"), [("fastavro", False), ("fastavro", True), ("pyarrow", False)]
)
def test_a_library_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, has_list: bool
) -> None:
    table = FolderTable(tmp_path / "t", 2)
    if has_list:
        table.append()
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=f"{library} is not installed") as refused:
        append(table, {"id": 1})
    assert ".[metadata]" in str(refused.value.hint)


REFUSED = [
    ("long", True, "a whole number is needed"),
    ("long", 1.5, "a whole number is needed"),
    ("int", 2**31, "a number of 32 bits is needed"),
    ("boolean", 1, "true or false is needed"),
    ("double", "1", "a number is needed"),
    ("string", 1, "a text is needed"),
    ("date", dt.datetime(2026, 1, 1), "a day is needed"),
    ("date", "yesterday", "isoformat"),
    ("time", "00:00:00+01:00", "a time without a zone is needed"),
    ("timestamp", AT.replace(tzinfo=UTC), "a time without a zone is needed"),
    ("timestamptz", "now", "it is no time"),
    *(
        ("timestamptz", f"2026-01-01 00:00:00{zone}", "it is no time")
        for zone in ("+18:01", "-1900", "+02:60")
    ),
    ("timestamptz", "2026-01-01 00:00:00.0000001Z", "finer than a microsecond"),
    ("binary", "xyz", "hexadecimal"),
    ("binary", 3, "bytes-like"),
    ("fixed[2]", "ff", "it has 1 bytes"),
    ("uuid", "x", "badly formed"),
    ("decimal(3, 1)", "1.25", "more than 1 decimal places"),
    ("decimal(3, 1)", 100, "more than 3 digits"),
    ("decimal(3, 1)", 1.5, "an exact number is needed"),
    ("decimal(3, 1)", "a", "cannot have the value 'a'"),
    (NESTED[0]["type"], 5, "a mapping is needed"),
    (NESTED[0]["type"], {"z": 5}, "the struct has no field `z`"),
    (NESTED[0]["type"], {"l": [None]}, "`x.l.element` is required"),
    (NESTED[0]["type"], {"l": "ab"}, "`x.l` cannot have the value 'ab': a list is needed"),
    (NESTED[1]["type"], [], "a mapping is needed"),
    (NESTED[1]["type"], {"k": {"y": 1}}, r"`x.value.y` \(date\) cannot have the value 1"),
]


@pytest.mark.parametrize(("type_", "value", "reason"), REFUSED)
def test_a_value_that_does_not_fit_is_refused(tmp_path: Path, type_: Any, value: Any, reason: str) -> None:
    table = FolderTable(tmp_path / "t", 2, ({"id": 20, "name": "x", "type": type_},))
    with pytest.raises(EngineError, match=f"a row does not fit the table at {table.folder}: .*{reason}"):
        write_rows(table.metadata, table.files, [{"x": value}])
    assert not list(table.folder.rglob("*.parquet"))


def test_a_row_has_the_columns_of_the_table(tmp_path: Path) -> None:
    table = FolderTable(tmp_path / "t", 2, ({"id": 1, "name": "id", "type": "long", "required": True},))
    with pytest.raises(EngineError, match="it has no column `other`"):
        write_rows(table.metadata, table.files, [{"id": 1, "other": 2}])
    with pytest.raises(EngineError, match="`id` is required"):
        write_rows(table.metadata, table.files, [{"id": None}])


def test_properties_choose_the_folder_and_the_metrics(tmp_path: Path) -> None:
    table = FolderTable(tmp_path / "t", 2, write_data_path=f"{tmp_path}/elsewhere/")
    metrics = "write.metadata.metrics"
    row = {"id": 1, "region": "x" * 20}
    for modes, sizes, counts, bounds in [
        ({}, {1, 2}, {1: 1, 2: 1}, {2: b"x" * 16}),
        ({f"{metrics}.default": "counts"}, {1, 2}, {1: 1, 2: 1}, {}),
        ({f"{metrics}.default": "none", f"{metrics}.column.region": "full"}, {2}, {2: 1}, {2: b"x" * 20}),
        ({f"{metrics}.column.region": "truncate(3)"}, {1, 2}, {1: 1, 2: 1}, {2: b"xxx"}),
        ({f"{metrics}.column.region": "most"}, {1, 2}, {1: 1, 2: 1}, {2: b"x" * 16}),
    ]:
        metadata = {**table.metadata, "properties": {**table.metadata["properties"], **modes}}
        file = write_rows(metadata, table.files, [row])
        assert Path(file.path).parent == tmp_path / "elsewhere"
        assert file.column_sizes.keys() == sizes
        assert file.value_counts == counts
        assert {key: bound for key, bound in file.lower_bounds.items() if key == 2} == bounds


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("ab", "ab", "ab"),
        ("abc", "ab", "ac"),
        ("a\U0010ffffc", "a\U0010ffff", "b"),
        ("\U0010ffff\U0010ffffc", "\U0010ffff\U0010ffff", None),
        ("a\ud7ffc", "a\ud7ff", "a\ue000"),
        ("a\U0001f600c", "a\U0001f600", "a\U0001f601"),
    ],
)
def test_bounds_of_texts_are_characters(text: str, lower: str, upper: str | None) -> None:
    type_ = Primitive("string")
    assert lower_bound(type_, text.encode(), 2) == lower.encode()
    assert upper_bound(type_, text.encode(), 2) == (None if upper is None else upper.encode())


@pytest.mark.parametrize(
    ("value", "lower", "upper"),
    [
        (b"\x01\xff", b"\x01\xff", b"\x01\xff"),
        (b"\x01\x02\x03", b"\x01\x02", b"\x01\x03"),
        (b"\x01\xff\x03", b"\x01\xff", b"\x02"),
        (b"\xff\xff\x03", b"\xff\xff", None),
    ],
)
def test_bounds_of_bytes_are_bytes(value: bytes, lower: bytes, upper: bytes | None) -> None:
    type_ = Primitive("binary")
    assert (lower_bound(type_, value, 2), upper_bound(type_, value, 2)) == (lower, upper)
