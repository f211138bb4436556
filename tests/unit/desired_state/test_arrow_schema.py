"""Types of Arrow and of Iceberg, both ways: for a new table, and for what a table is compared with."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icemigrate.desired_state.arrow_schema import new_columns, read_arrow_schema
from icemigrate.errors import Mistakes
from icemigrate.iceberg.arrow_types import arrow_schema
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.type_text import format_type, parse_type
from icemigrate.iceberg.types import Field

NAME = TableName.parse("sales.orders")


def columns_of(type_: Any) -> tuple[str, str]:
    """The type of a new column, and the type that a declared column has."""
    schema = pa.schema([pa.field("c", type_)])
    (new,), declared = new_columns(schema), read_arrow_schema(schema, NAME).table.schema.fields[0]
    return format_type(new.type), format_type(declared.type)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (pa.bool_(), "boolean"),
        *((width, "int") for width in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())),
        *((width, "long") for width in (pa.int64(), pa.uint32())),
        (pa.uint64(), "decimal(20,0)"),
        *((width, "float") for width in (pa.float16(), pa.float32())),
        (pa.float64(), "double"),
        *((day, "date") for day in (pa.date32(), pa.date64())),
        *((unit, "time") for unit in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))),
        *((pa.timestamp(unit), "timestamp") for unit in ("s", "ms", "us")),
        (pa.timestamp("us", "UTC"), "timestamptz"),
        (pa.timestamp("ns"), "timestamp_ns"),
        (pa.timestamp("ns", "Europe/Berlin"), "timestamptz_ns"),
        *((kind, "string") for kind in (pa.string(), pa.large_string(), pa.string_view())),
        *((kind, "binary") for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
        (pa.binary(5), "fixed[5]"),
        (pa.uuid(), "uuid"),
        (pa.decimal128(10, 2), "decimal(10,2)"),
        (pa.decimal256(20, 2), "decimal(20,2)"),
        *((kind(pa.int32()), "list<int>") for kind in (pa.list_, pa.large_list, pa.list_view)),
        (pa.list_(pa.int32(), 3), "list<int>"),
        (pa.list_(pa.field("x", pa.int32(), nullable=False)), "list<required int>"),
        (pa.map_(pa.string(), pa.field("v", pa.int8(), nullable=False)), "map<string, required int>"),
        (pa.struct([pa.field("a", pa.int8(), nullable=False)]), "struct<a: required int>"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.map_(pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.null())), None),
    ],
    ids=str,
)
def test_a_type_of_arrow_has_one_type_in_iceberg(type_: Any, text: str | None) -> None:
    if text is None:  # Only a new column of nulls is a text: `unknown` needs format version 3.
        assert columns_of(type_) == ("map<string, list<string>>", "map<string, list<unknown>>")
    else:
        assert columns_of(type_) == (text, text)


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (pa.duration("s"), "the type of `c` cannot be declared: Iceberg has no type for `duration[s]`"),
        (pa.month_day_nano_interval(), "Iceberg has no type for `month_day_nano_interval`"),
        (pa.decimal256(50, 2), "Iceberg has no `decimal(50, 2)`"),
        (pa.decimal128(10, -2), "Iceberg has no `decimal(10, -2)`"),
        (pa.dense_union([pa.field("a", pa.int8())]), "Iceberg has no type for `dense_union"),
        (pa.struct([pa.field("at", pa.list_(pa.duration("s")))]), "the type of `c.at.element` cannot"),
    ],
    ids=str,
)
def test_a_type_that_iceberg_lacks_is_reported_with_its_column(type_: Any, message: str) -> None:
    schema = pa.schema([pa.field("c", type_)])
    for read in (new_columns, lambda given: read_arrow_schema(given, NAME)):
        with pytest.raises(Mistakes) as error:
            read(schema)
        (found,) = error.value.diagnostics
        assert message in found.message


@pytest.mark.parametrize(
    "text",
    [
        *("boolean", "int", "long", "float", "double", "date", "time", "string", "binary", "uuid"),
        *("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "fixed[7]", "decimal(38,9)"),
        "struct<a: int, b: required list<required map<string, struct<c: date>>>>",
    ],
)
def test_a_type_of_iceberg_returns_from_arrow(text: str) -> None:
    field = Field(1, "c", parse_type(text), required=True)
    (again,) = new_columns(arrow_schema((field,)))
    assert (format_type(again.type), again.required) == (format_type(field.type), True)


def test_a_field_of_arrow_keeps_its_description() -> None:
    schema = pa.schema([pa.field("c", pa.int8(), metadata={"comment": "how many"})])
    assert [column.doc for column in new_columns(schema)] == ["how many"]
