"""Defaults: YAML in, the specification's JSON single-value form out."""

from __future__ import annotations

import pytest

from icemigrate.diagnostics import FilePosition
from icemigrate.files.read.migration_file import DefaultEntry
from icemigrate.files.replay.default_values import BadDefault, default_value
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import JsonValue
from tests.support.replayed_migrations import migration


def written(text: str) -> DefaultEntry:
    columns = (
        migration(f"tables: [{{name: a.b, columns: [{{name: c, type: int, default: {text}}}]}}]")
        .tables[0]
        .columns
    )
    default = columns[0].default
    assert isinstance(default, DefaultEntry)
    return default


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("int", "null", None),
        ("list<int>", "null", None),
        ("boolean", "true", True),
        ("int", "-2147483648", -(2**31)),
        ("long", "9223372036854775807", 2**63 - 1),
        ("float", "0.5", 0.5),
        ("double", "1", 1.0),
        ("decimal(4,2)", "1.1", "1.10"),
        ("decimal(4,2)", "1.100", "1.10"),
        ("decimal(4,2)", "-0.05", "-0.05"),
        ("decimal(4,0)", "12", "12"),
        ("decimal(4,2)", "-0", "0.00"),
        ("decimal(9,2)", "1e3", "1000.00"),
        ("string", "no", "no"),
        ("string", '"7"', "7"),
        ("uuid", "F79C3E09-677C-4BBD-A479-3F349CB785E7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("date", "2026-11-27", "2026-11-27"),
        ("time", '"22:31"', "22:31:00"),
        ("time", '"22:31:08.500"', "22:31:08.5"),
        ("timestamp", '"2026-11-27 22:31:08.120"', "2026-11-27T22:31:08.12"),
        ("timestamptz", "2026-11-27T22:31:08Z", "2026-11-27T22:31:08+00:00"),
        ("timestamp_ns", '"2026-11-27T22:31:08.123456789"', "2026-11-27T22:31:08.123456789"),
        ("timestamptz_ns", '"2026-11-27T22:31+00:00"', "2026-11-27T22:31:00+00:00"),
        ("binary", '"00ff"', "00FF"),
        ("binary", '""', ""),
        ("fixed[2]", '"cafe"', "CAFE"),
    ],
)
def test_values(type_: str, text: str, value: JsonValue) -> None:
    found = default_value(written(text), parse_type(type_))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("boolean", "1"),
        ("int", "true"),
        ("int", "1.0"),
        ("int", "2147483648"),
        ("long", "9223372036854775808"),
        ("float", "1e39"),
        ("float", "x"),
        ("float", "true"),
        ("double", ".inf"),
        ("double", "1" + "0" * 400),
        ("decimal(4,2)", "1.111"),
        ("decimal(4,2)", "100"),
        ("decimal(4,2)", "1e999999999"),
        ("decimal(4,2)", "x"),
        ("decimal(4,2)", ".nan"),
        ("decimal(4,2)", "nan"),
        ("string", "7"),
        ("uuid", "x"),
        ("date", "2026-02-30"),
        ("date", "20261127"),
        ("time", '"25:00"'),
        ("time", "x"),
        ("timestamp", '"2026-11-27"'),
        ("timestamp", "2026-11-27T22:31:08Z"),
        ("timestamp", '"2026-11-27T22:61:08"'),
        ("timestamp", '"2026-11-27T22:31:08.1234567"'),
        ("timestamptz", '"2026-11-27T22:31:08"'),
        ("timestamptz", '"2026-11-27T22:31:08+01:00"'),
        ("binary", '"0g"'),
        ("fixed[2]", '"00"'),
    ],
)
def test_what_is_no_value_of_the_type(type_: str, text: str) -> None:
    with pytest.raises(BadDefault, match="is not a value of type") as caught:
        default_value(written(text), parse_type(type_))
    assert (caught.value.hint or "").startswith("write for example")


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        ("struct<a: int>", "{}", "the only default of a column"),
        ("list<int>", "[1]", "the only default of a column"),
        ("variant", "1", "the only default of a column"),
        ("geometry", "x", "the only default of a column"),
        ("int", "[1]", "a single value"),
    ],
)
def test_types_without_defaults(type_: str, text: str, message: str) -> None:
    with pytest.raises(BadDefault, match=message):
        default_value(written(text), parse_type(type_))


def test_a_number_beyond_all_floats_is_none() -> None:
    huge = DefaultEntry(10**400, "1e400", False, FilePosition("m.yaml"))
    with pytest.raises(BadDefault):
        default_value(huge, parse_type("double"))
