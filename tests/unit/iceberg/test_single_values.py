"""Bounds of manifests as JSON single values, and what transforms make of these."""

from __future__ import annotations

import pytest

from icemigrate.iceberg.partitioning import Transform
from icemigrate.iceberg.single_values import apply_transform, from_bytes
from icemigrate.iceberg.types import Decimal, Fixed, JsonValue, Primitive, Type


@pytest.mark.parametrize(
    ("type_", "value", "json"),
    [
        (Primitive("boolean"), b"\x01", True),
        (Primitive("int"), (-5).to_bytes(4, "little", signed=True), -5),
        # An int that became a long: the bound keeps its four bytes.
        (Primitive("long"), (-5).to_bytes(4, "little", signed=True), -5),
        (Primitive("date"), (-1).to_bytes(4, "little", signed=True), "1969-12-31"),
        (Primitive("time"), (1_500_000).to_bytes(8, "little"), "00:00:01.500000"),
        (Primitive("timestamp"), (-1).to_bytes(8, "little", signed=True), "1969-12-31T23:59:59.999999"),
        (Primitive("timestamptz"), (0).to_bytes(8, "little"), "1970-01-01T00:00:00.000000+00:00"),
        (Primitive("timestamp_ns"), (1).to_bytes(8, "little"), "1970-01-01T00:00:00.000000001"),
        (
            Primitive("timestamptz_ns"),
            (-1).to_bytes(8, "little", signed=True),
            "1969-12-31T23:59:59.999999999+00:00",
        ),
        (Primitive("string"), "für".encode(), "für"),
        (Primitive("binary"), b"\x00\xff", "00ff"),
        (Fixed(2), b"\x00\xff", "00ff"),
        (Primitive("uuid"), bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (Decimal(9, 2), (-50).to_bytes(1, "big", signed=True), "-0.50"),
        (Decimal(9, 0), (12).to_bytes(1, "big"), "12"),
        # A bound of these tells neither NaN nor the sign of zero.
        (Primitive("double"), b"\x00" * 8, None),
        (Primitive("float"), b"\x00" * 4, None),
        # A date that became a timestamp: the bound keeps its days.
        (Primitive("timestamp"), (20_000).to_bytes(4, "little"), None),
        (Primitive("timestamp_ns"), (20_000).to_bytes(4, "little"), None),
        # Python has no such year.
        (Primitive("timestamp"), (2**62).to_bytes(8, "little"), None),
    ],
)
def test_a_bound_is_read_as_json(type_: Type, value: bytes, json: JsonValue) -> None:
    assert from_bytes(type_, value) == json


@pytest.mark.parametrize(
    ("width", "type_", "value", "cut"),
    [
        (10, Primitive("long"), 17, 10),
        (10, Primitive("int"), -1, -10),
        (50, Decimal(9, 2), "10.65", "10.50"),
        (50, Decimal(9, 2), "-0.01", "-0.50"),
        (3, Primitive("string"), "iceberg", "ice"),
        (1, Primitive("string"), "\U0001f9ca!", "\U0001f9ca"),
        (1, Primitive("binary"), "00ff", "00"),
        (1, Primitive("string"), None, None),
    ],
)
def test_a_truncation_is_that_of_the_specification(
    width: int, type_: Type, value: JsonValue, cut: JsonValue
) -> None:
    assert apply_transform(Transform("truncate", width), type_, value) == cut
    assert apply_transform(Transform("identity"), type_, value) == value
