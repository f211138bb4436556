"""Columns that attributes fill: their names, types and values, and how attributes are counted."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import pytest

from icemigrate.otlp.attribute_columns import (
    AttributeSource,
    attribute_sources,
    column_name,
    column_type,
    column_values,
    is_column_candidate,
)
from icemigrate.otlp.export_requests import empty_request
from icemigrate.otlp.observed_attributes import observe_request
from icemigrate.otlp.telemetry_columns import common_columns, read_columns
from icemigrate.wal.entries import EntryKind, PayloadEncoding


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("attributes.http.request.method", "http_request_method"),
        ("attributes.http_request_method", "http_request_method"),
        ("attributes.userId", "user_id"),
        ("attributes.HTTP-Route", "http_route"),
        ("attributes.größe", "gr__e"),
        ("attributes.name", "attribute_name"),
        ("attributes.status.code", "attribute_status_code"),
        ("attributes._file", "attribute__file"),
        ("attributes.3d", "attribute_3d"),
        ("attributes.…", "attribute__"),
        ("resource_attributes.k8s.pod.name", "resource_k8s_pod_name"),
        ("resource_attributes.attributes", "attribute_resource_attributes"),
        ("scope_attributes.Short Name", "scope_short_name"),
    ],
)
def test_the_name_of_a_column(source: str, name: str) -> None:
    map_, _, attribute = source.partition(".")
    assert column_name(AttributeSource(map_, attribute), EntryKind.TRACES) == name


@pytest.mark.parametrize(
    "name", ["", "x" * 129, "a\x00b", "a\x1b[31m", "a\u202eb", "a\nb", "${HOME}", "a\ud800"]
)
def test_names_that_no_generated_column_has(name: str) -> None:
    assert not is_column_candidate(name)


def test_properties_name_the_attributes() -> None:
    properties = {
        "icemigrate.attribute.column.route": "attributes.http.route",
        "icemigrate.attribute.column.pod": "resource_attributes.k8s.pod.name",
        "icemigrate.attribute.column.a": "http.route",
        "icemigrate.attribute.column.b": "attributes.",
        "write.format.default": "attributes.x",
    }
    assert attribute_sources(properties) == {
        "route": AttributeSource("attributes", "http.route"),
        "pod": AttributeSource("resource_attributes", "k8s.pod.name"),
    }


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ({"long"}, "long"),
        ({"long", "empty"}, "long"),
        ({"long", "double"}, "double"),
        ({"string", "long"}, "string"),
        ({"boolean", "double"}, "string"),
        ({"string", "list"}, None),
        ({"map"}, None),
        ({"bytes"}, None),
        ({"empty"}, None),
        (set(), None),
    ],
)
def test_the_type_of_a_column(types: set[str], expected: str | None) -> None:
    assert column_type(types) == expected


@pytest.mark.parametrize(
    ("type_", "texts", "values"),
    [
        ("string", ["", "a", None, "1"], ["", "a", None, "1"]),
        (
            "long",
            [
                "0",
                "-7",
                "9223372036854775807",
                "9223372036854775808",
                "007",
                "-0",
                "+1",
                "1.0",
                "",
                "٣",
                "1_0",
            ],
            [0, -7, 2**63 - 1, None, None, None, None, None, None, None, None],
        ),
        ("int", ["2147483647", "2147483648", "-2147483648"], [2**31 - 1, None, -(2**31)]),
        (
            "double",
            [
                "1",
                "1.5",
                "1e-07",
                "-Infinity",
                "inf",
                "1e999",
                "9007199254740993",
                "9007199254740992",
                ".5",
                "x",
            ],
            [1.0, 1.5, 1e-07, -math.inf, None, None, None, 2.0**53, None, None],
        ),
        ("double", ["9" * 5000], [None]),
        ("boolean", ["true", "false", "True", "1", None], [True, False, None, None, None]),
    ],
)
def test_values_are_read_exactly_or_not_at_all(
    type_: str, texts: list[str | None], values: list[Any]
) -> None:
    assert column_values(texts, type_) == values


def _attributes(**values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in values.items()]


_ITEM = {
    "attributes": [
        *_attributes(
            text={"stringValue": "1"},
            whole={"intValue": "1"},
            number={"doubleValue": 1.5},
            truth={"boolValue": False},
            raw={"bytesValue": "AA=="},
            listed={"arrayValue": {"values": []}},
            nested={"kvlistValue": {"values": []}},
            nothing={},
            again={"intValue": "1"},
        ),
        {"key": "again", "value": {"stringValue": ""}},
    ]
}
_TYPES = {
    "text": "string",
    "whole": "long",
    "number": "double",
    "truth": "boolean",
    "raw": "bytes",
    "listed": "list",
    "nested": "map",
    "nothing": "empty",
    "again": "string",
}


def _request(kind: EntryKind) -> dict[str, Any]:
    """Two items of one resource, and a scope without items."""
    origin = {"attributes": _attributes(host={"stringValue": "h"})}
    scope = {"attributes": _attributes(lang={"stringValue": "py"})}
    items: list[Any] = [_ITEM, _ITEM]
    names = {"traces": ("Spans", "spans"), "logs": ("Logs", "logRecords"), "metrics": ("Metrics", "metrics")}
    word, field = names[kind.value]
    if kind is EntryKind.METRICS:
        items = [{"gauge": {"dataPoints": [_ITEM]}}, {"sum": {"dataPoints": [_ITEM]}}]
    scopes = [{"scope": scope, field: items}, {"scope": {"attributes": _attributes(x={"stringValue": ""})}}]
    return {f"resource{word}": [{"resource": origin, f"scope{word}": scopes}]}


@pytest.mark.parametrize("kind", EntryKind)
def test_attributes_are_counted_with_their_types(kind: EntryKind) -> None:
    expected = Counter(
        {
            ("resource_attributes", "host", "string"): 2,
            ("scope_attributes", "lang", "string"): 2,
            **{("attributes", name, type_): 2 for name, type_ in _TYPES.items()},
        }
    )
    request = _request(kind)
    from google.protobuf.json_format import ParseDict

    message = ParseDict(request, empty_request(kind))
    payloads = {
        PayloadEncoding.OTLP_JSON: json.dumps(request).encode(),
        PayloadEncoding.OTLP_PROTOBUF: message.SerializeToString(),
    }
    for encoding, payload in payloads.items():
        found = Counter[tuple[str, str, str]]()

        def observe(
            map_: str, name: str, type_: str, rows: int, found: Counter[tuple[str, str, str]] = found
        ) -> None:
            found[map_, name, type_] += rows

        common_columns(payload, kind, encoding, observe)
        assert found == expected, encoding
        found.clear()
        observe_request(request, kind, observe)
        assert found == expected


def test_a_request_that_cannot_be_read_counts_nothing_and_an_uncommon_one_does() -> None:
    found = list[str]()

    def observe(_map: str, name: str, _type: str, _rows: int) -> None:
        found.append(name)

    span = {"kind": "2", "attributes": _attributes(a={"intValue": 1.0})}
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    read_columns(json.dumps(request).encode(), EntryKind.TRACES, PayloadEncoding.OTLP_JSON, observe)
    assert found == ["a"]
