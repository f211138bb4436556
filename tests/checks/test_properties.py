"""The list of table properties, and what is a value of each kind."""

from __future__ import annotations

import pytest

from icemigrate.iceberg.table_properties import ATTRIBUTE_PREFIX, PREFIXES, RESERVED_PROPERTIES
from icemigrate.rules.known_properties import (
    FAMILIES,
    PREFIXED,
    PROPERTIES,
    PropertyKind,
    property_value_problem,
)


@pytest.mark.parametrize(
    ("kind", "right"),
    [
        ("boolean", ["true", "FALSE"]),
        ("int", ["0", "-1", "+5", "2147483647"]),
        ("long", ["9223372036854775807"]),
        ("double", ["0.05", "1e-3", "1"]),
        ("metrics", ["none", "Counts", "full", "truncate(16)"]),
        ("text", ["anything", ""]),
        (("zstd", "gzip"), ["zstd", "GZIP"]),
    ],
)
def test_values_that_iceberg_reads(kind: PropertyKind, right: list[str]) -> None:
    assert [value for value in right if property_value_problem(kind, value) is not None] == []


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("boolean", ["yes", "1", ""]),
        ("int", ["", "1.5", "1_000", "10MB", "2147483648", "9" * 5000, "\u0663"]),
        ("long", ["9223372036854775808", "5d"]),
        ("double", ["", "small", "1_0"]),
        ("metrics", ["truncate", "truncate(0)", "truncate(x)", "some"]),
        (("zstd", "gzip"), ["zsdt", ""]),
    ],
)
def test_values_that_iceberg_does_not_read(kind: PropertyKind, bad: list[str]) -> None:
    assert [value for value in bad if property_value_problem(kind, value) is None] == []


def test_the_list_is_one_of_ordinary_properties() -> None:
    assert not PROPERTIES.keys() & RESERVED_PROPERTIES.keys()
    assert set(PREFIXES) <= PREFIXED.keys()
    assert all(key.startswith((*FAMILIES, ATTRIBUTE_PREFIX)) for key in PREFIXED)
    assert all(
        kind == tuple(w.lower() for w in kind) for kind in PROPERTIES.values() if isinstance(kind, tuple)
    )
