"""Values of the generator in Python; ``rust/python/tests`` compares them with those of the Rust module."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icemigrate.iceberg.arrow_types import arrow_schema
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Decimal, Field, Fixed, Geometry, List, Map, Primitive, Struct
from icemigrate.test_data.columns import record_batch
from icemigrate.test_data.schema_checks import unsupported_columns
from tests.support.every_type import LEAF_TYPES, LONG, STRING, every_type

ROOT = Path(__file__).parents[3]
VALUES = ROOT / "tests" / "data" / "test_data_values.json"
"""Three rows of each column for seed 7, as text; a change breaks what users rely on."""


def texts(batch: pa.RecordBatch) -> dict[str, list[str]]:
    """Each column's values as Arrow prints them, on one line."""
    return {
        name: [" ".join(str(value).split()) for value in batch.column(name)]
        for name in batch.schema.names
        if "_ns" not in name  # Python has no value for nanoseconds
    }


def test_a_seed_gives_the_same_values_in_every_release() -> None:
    batch = record_batch(every_type(), 7, 40, 3)
    batch.validate(full=True)
    assert texts(batch) == json.loads(VALUES.read_text(encoding="utf-8"))


def test_a_row_has_the_same_values_in_every_batch() -> None:
    schema = every_type()
    whole = record_batch(schema, 3, 10, 200)
    parts = [record_batch(schema, 3, 10, 70), record_batch(schema, 3, 80, 130)]
    assert pa.Table.from_batches([whole]).combine_chunks() == pa.Table.from_batches(parts).combine_chunks()


def test_nulls_are_in_optional_columns_alone() -> None:
    schema = every_type()
    batch = record_batch(schema, 1, 0, 4000)
    for field in schema.fields:
        if field.name == "never":
            continue
        nulls = batch.column(field.name).null_count
        assert (nulls == 0) if field.required else (120 < nulls < 290)


def test_identifier_fields_are_unique() -> None:
    batch = record_batch(every_type(), 1, 5, 300)
    possible = {"unique_boolean": 2, "unique_decimal_1_0": 10, "unique_fixed_1": 256}
    for name in ("id", *(f"unique_{name}" for name in LEAF_TYPES)):
        values = batch.column(name).cast(pa.int64()) if "_ns" in name else batch.column(name)
        assert len(set(values.to_pylist())) == possible.get(name, 300), name


def test_keys_of_a_map_differ() -> None:
    batch = record_batch(every_type(), 2, 0, 300)
    for name in LEAF_TYPES:
        if "_ns" in name:
            continue
        for entries in batch.column(f"key_{name}").to_pylist():
            keys = [key for key, _ in entries or ()]
            assert len(set(keys)) == len(keys) <= 3


def test_some_keys_are_frequent_and_some_rows_are_late() -> None:
    batch = record_batch(every_type(), 2, 0, 5000)
    counts = Counter(batch.column("i_user_id").drop_null().to_pylist())
    assert counts[1] > 100
    assert len(counts) > 1000
    times = batch.column("required_timestamp").to_pylist()
    newest, late = times[0], 0
    for time in times:
        late += (newest - time).total_seconds() > 60
        newest = max(newest, time)
    assert 200 < late < 420


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        (Primitive("variant"), [(("a",), "has type `variant`")]),
        (Geometry("EPSG:3857"), [(("a",), "has type `geometry(EPSG:3857)`")]),
        (List(Field(2, "element", Primitive("unknown"))), [(("a", "element"), "has type `unknown`")]),
        (Fixed(65_537), [(("a",), "is longer than 65,536 bytes")]),
        (Struct((Field(2, "b", Primitive("unknown")),)), [(("a",), "has no field that files store")]),
        (
            Map(Field(2, "key", Primitive("int"), True), Field(3, "value", Primitive("variant"))),
            [(("a", "value"), "has type `variant`")],
        ),
        (Primitive("unknown"), []),
    ],
)
def test_a_column_without_test_data_is_found(type_: Any, reason: list[tuple[tuple[str, ...], str]]) -> None:
    assert list(unsupported_columns(Schema((Field(1, "a", type_),)))) == reason


def test_a_field_keeps_its_id_and_nullability() -> None:
    schema = every_type()
    field = arrow_schema(schema.fields).field("person").type.field("home")
    (person,) = [f for f in schema.fields if f.name == "person"]
    assert isinstance(person.type, Struct)
    assert field.metadata == {b"PARQUET:field_id": str(person.type.fields[0].id).encode()}
    assert not field.nullable
    assert "never" not in arrow_schema(schema.fields).names


def test_the_rows_of_the_page() -> None:
    page = (ROOT / "docs" / "test-data.md").read_text(encoding="utf-8")
    email, city = Field(2, "email", STRING), Field(3, "city", STRING, True)
    amount = Field(4, "amount", Decimal(9, 2), True)
    ordered_at = Field(5, "ordered_at", Primitive("timestamptz"), True)
    schema = Schema((Field(1, "id", LONG, True), email, city, amount, ordered_at))
    for row in record_batch(schema, 7, 0, 6).to_pylist():
        cells = ("null" if value is None else str(value).removesuffix("+00:00") for value in row.values())
        assert f"| {' | '.join(cells)} |\n" in page
