"""Rows of export requests, in JSON and in Protocol Buffers."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.telemetry_load import TelemetryLoad
from icemigrate.otlp.export_requests import decode_request
from icemigrate.otlp.payload_fields import UnreadablePayload
from icemigrate.otlp.request_forms import UncommonForm
from icemigrate.otlp.telemetry_columns import RepeatedValues, common_columns, read_columns
from icemigrate.otlp.telemetry_rows import telemetry_rows
from icemigrate.otlp.telemetry_types import TELEMETRY_TYPES
from icemigrate.wal.entries import EntryKind, PayloadEncoding

TRACE, SPAN, PARENT = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", "eee19b7ec3c1b173"
START, END = 1544712660000000000, 1544712661000000123
AT = START // 1000
"""In microseconds."""

RESOURCE = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
SCOPE = {"name": "lib", "version": "1.0"}
NESTED = {"key": "x", "value": {"stringValue": "é"}}
SPANS: dict[str, Any] = {
    "resourceSpans": [
        {
            "resource": RESOURCE,
            "scopeSpans": [
                {
                    "scope": SCOPE,
                    "spans": [
                        {
                            "traceId": TRACE.upper(),
                            "spanId": SPAN,
                            "parentSpanId": PARENT,
                            "name": "GET /",
                            "kind": 2,
                            "flags": 4294967295,
                            "startTimeUnixNano": str(START),
                            "endTimeUnixNano": END,
                            "attributes": [
                                {"key": "a", "value": {"intValue": "7"}},
                                {"key": "b", "value": {"arrayValue": {"values": [{"boolValue": True}, {}]}}},
                                {"key": "c", "value": {"doubleValue": 1.5}},
                                {"key": "d", "value": {"bytesValue": "AAE="}},
                                {"key": "e", "value": {"kvlistValue": {"values": [NESTED]}}},
                                {"key": "f"},
                            ],
                            "events": [{"timeUnixNano": str(START), "name": "retry"}],
                            "links": [{"traceId": TRACE, "spanId": PARENT}],
                            "status": {"code": 2, "message": "failed"},
                            "unknown": {"ignored": 1},
                        }
                    ],
                }
            ],
        }
    ]
}
SPAN_ROW: dict[str, Any] = {
    "service_name": "shop",
    "resource_attributes": {"service.name": "shop"},
    "scope_name": "lib",
    "scope_version": "1.0",
    "scope_attributes": {},
    "trace_id": bytes.fromhex(TRACE),
    "span_id": bytes.fromhex(SPAN),
    "parent_span_id": bytes.fromhex(PARENT),
    "trace_state": None,
    "flags": 4294967295,
    "name": "GET /",
    "kind": 2,
    "start_time": AT,
    "end_time": AT + 1_000_000,
    "duration_ns": 1000000123,
    "status_code": 2,
    "status_message": "failed",
    "attributes": {"a": "7", "b": "[true, null]", "c": "1.5", "d": "AAE=", "e": '{"x": "é"}', "f": ""},
    "events": [{"time": AT, "name": "retry", "attributes": {}}],
    "links": [
        {
            "trace_id": bytes.fromhex(TRACE),
            "span_id": bytes.fromhex(PARENT),
            "trace_state": None,
            "attributes": {},
        }
    ],
}


def rows(
    payload: object, kind: EntryKind, encoding: PayloadEncoding = PayloadEncoding.OTLP_JSON
) -> list[Any]:
    """The rows of a payload, after a comparison with its columns: both read the same, or refuse the same."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    try:
        found = list(telemetry_rows(decode_request(data, kind, encoding), kind))
    except UnreadablePayload as error:
        with pytest.raises(UnreadablePayload, match=re.escape(error.message)):
            read_columns(data, kind, encoding)
        with pytest.raises(UncommonForm):
            common_columns(data, kind, encoding)
        raise
    columns = read_columns(data, kind, encoding)
    assert columns.columns.keys() == TELEMETRY_TYPES[kind].keys()
    lists = {name: _listed(column) for name, column in columns.columns.items()}
    assert {len(column) for column in lists.values()} == {columns.rows}
    # By their notation, so that a value that is not a number equals itself.
    by_row = [{name: column[n] for name, column in lists.items()} for n in range(columns.rows)]
    assert [repr(sorted(row.items())) for row in by_row] == [repr(sorted(row.items())) for row in found]
    return found


def _listed(column: list[Any] | RepeatedValues) -> list[Any]:
    if isinstance(column, RepeatedValues):
        return [value for value, n in zip(column.values, column.counts, strict=True) for _ in range(n)]
    return column


def of_span(**fields: object) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [fields]}]}]}


def test_a_span_in_json() -> None:
    assert rows(SPANS, EntryKind.TRACES) == [SPAN_ROW]


def test_the_same_span_in_protocol_buffers() -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    part = request.resource_spans.add()
    part.resource.attributes.add(key="service.name").value.string_value = "shop"
    scope = part.scope_spans.add()
    scope.scope.name, scope.scope.version = "lib", "1.0"
    span = scope.spans.add(
        trace_id=bytes.fromhex(TRACE),
        span_id=bytes.fromhex(SPAN),
        parent_span_id=bytes.fromhex(PARENT),
        name="GET /",
        kind=2,
        flags=4294967295,
        start_time_unix_nano=START,
        end_time_unix_nano=END,
    )
    span.attributes.add(key="a").value.int_value = 7
    values = span.attributes.add(key="b").value.array_value.values
    values.add().bool_value = True
    values.add()
    span.attributes.add(key="c").value.double_value = 1.5
    span.attributes.add(key="d").value.bytes_value = b"\0\1"
    span.attributes.add(key="e").value.kvlist_value.values.add(key="x").value.string_value = "é"
    span.attributes.add(key="f")
    span.events.add(time_unix_nano=START, name="retry")
    span.links.add(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(PARENT))
    span.status.code, span.status.message = 2, "failed"
    encoded = request.SerializeToString()
    assert rows(encoded, EntryKind.TRACES, PayloadEncoding.OTLP_PROTOBUF) == [SPAN_ROW]


def test_a_log_record_has_the_time_at_which_it_was_observed() -> None:
    record = {
        "observedTimeUnixNano": str(START),
        "severityNumber": 9,
        "body": {"kvlistValue": {"values": [{"key": "n", "value": {"intValue": 1}}]}},
    }
    (row,) = rows({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}, EntryKind.LOGS)
    assert (row["time"], row["observed_time"], row["body"]) == (AT, AT, '{"n": 1}')
    assert (row["trace_id"], row["severity_number"], row["service_name"]) == (None, 9, None)


def test_each_data_point_of_each_type_is_a_row() -> None:
    metrics = [
        {"name": "g", "gauge": {"dataPoints": [{"asDouble": 1.5, "timeUnixNano": START}, {"asInt": "3"}]}},
        {
            "name": "s",
            "sum": {"isMonotonic": True, "aggregationTemporality": 2, "dataPoints": [{"asDouble": "NaN"}]},
        },
        {
            "name": "h",
            "histogram": {"dataPoints": [{"count": 3, "bucketCounts": ["1", 2], "explicitBounds": [0.5]}]},
        },
        {
            "name": "e",
            "exponentialHistogram": {
                "dataPoints": [{"scale": 1, "positive": {"offset": 2, "bucketCounts": ["4"]}}]
            },
        },
        {"name": "q", "summary": {"dataPoints": [{"quantileValues": [{"quantile": 0.5, "value": 2}]}]}},
    ]
    found = rows({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}, EntryKind.METRICS)
    assert [row["type"] for row in found] == [
        *("gauge", "gauge", "sum", "histogram", "exponential_histogram", "summary")
    ]
    assert [(row["value"], row["int_value"]) for row in found[:2]] == [(1.5, None), (3.0, 3)]
    assert found[2]["value"] != found[2]["value"], "not a number"
    assert (found[2]["is_monotonic"], found[2]["temporality"]) == (True, 2)
    assert (found[3]["bucket_counts"], found[3]["explicit_bounds"]) == ([1, 2], [0.5])
    assert (found[4]["positive"], found[4]["negative"]) == ({"offset": 2, "counts": [4]}, None)
    assert found[5]["quantiles"] == [{"quantile": 0.5, "value": 2.0}]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"{", "the payload is no JSON: Input data was truncated"),
        (b"[]", "the payload is no JSON object"),
        ({"resourceSpans": 1}, "`resourceSpans` is 1, and a list is expected"),
        ({"resourceSpans": [1]}, "`resourceSpans` is 1, and an object is expected"),
        (of_span(traceId="zz"), '`traceId` is "zz", and 32 hexadecimal digits is expected'),
        (of_span(spanId=SPAN + "00"), f'`spanId` is "{SPAN}00", and 16 hexadecimal digits is expected'),
        (of_span(name=5), "`name` is 5, and a string is expected"),
        (of_span(kind=2**40), f"`kind` is {2**40}, and an integer of 32 bits is expected"),
        (
            of_span(startTimeUnixNano="-5"),
            "`startTimeUnixNano` is -5, and a time between 1970 and 2262 in nanoseconds is expected",
        ),
        (
            of_span(attributes=[{"key": "a", "value": {"bytesValue": "!"}}]),
            '`bytesValue` is "!", and base64 is expected',
        ),
    ],
)
def test_a_payload_that_is_no_request_says_where(payload: object, message: str) -> None:
    with pytest.raises(UnreadablePayload) as error:
        rows(payload, EntryKind.TRACES)
    assert error.value.message == message


def test_ids_of_zeros_are_no_ids_and_deep_values_are_refused() -> None:
    (row,) = rows(of_span(traceId="0" * 32, spanId=""), EntryKind.TRACES)
    assert (row["trace_id"], row["span_id"]) == (None, None)
    value: dict[str, Any] = {"intValue": 1}
    for _ in range(40):
        value = {"arrayValue": {"values": [value]}}
    with pytest.raises(UnreadablePayload, match="nested more than 32 levels deep"):
        rows(of_span(attributes=[{"key": "a", "value": value}]), EntryKind.TRACES)
    with pytest.raises(UnreadablePayload):
        rows(b"[" * 100_000, EntryKind.TRACES)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def _paths(node: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(node, dict):
        return [path, *(p for key, one in node.items() for p in _paths(one, (*path, key)))]
    if isinstance(node, list):
        return [path, *(p for n, one in enumerate(node) for p in _paths(one, (*path, n)))]
    return [path]


@pytest.mark.parametrize("encoding", PayloadEncoding)
@pytest.mark.parametrize("kind", EntryKind)
def test_what_exporters_write_is_of_the_common_form(kind: EntryKind, encoding: PayloadEncoding) -> None:
    load = TelemetryLoad(requests=30, items=20, tenants=5, encoding=encoding)
    payloads = [entry.payload for entry in load.entries() if entry.kind is kind]
    found = [row for payload in payloads for row in rows(payload, kind, encoding)]
    assert len(found) == 20 * len(payloads)
    for payload in payloads:
        common_columns(payload, kind, encoding)


def _request(kind: EntryKind) -> Any:
    if kind is EntryKind.TRACES:
        return SPANS
    load = TelemetryLoad(requests=3, items=6, tenants=1)
    return next(json.loads(entry.payload) for entry in load.entries() if entry.kind is kind)


CHANGES = st.sampled_from(EntryKind).flatmap(
    lambda kind: st.tuples(st.just(kind), st.sampled_from(_paths(_request(kind))[1:]), JSON)
)


@given(CHANGES)
def test_any_change_of_a_request_is_read_or_refused(
    change: tuple[EntryKind, tuple[Any, ...], object],
) -> None:
    kind, path, value = change
    changed = json.loads(json.dumps(_request(kind)))
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    try:
        found = rows(changed, kind)
    except UnreadablePayload:
        return
    assert all(row.keys() == TELEMETRY_TYPES[kind].keys() for row in found)


@given(st.binary(max_size=40), st.sampled_from(EntryKind), st.sampled_from(PayloadEncoding))
def test_random_bytes_are_read_or_refused(data: bytes, kind: EntryKind, encoding: PayloadEncoding) -> None:
    with suppress(UnreadablePayload):
        rows(data, kind, encoding)
