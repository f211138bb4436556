"""The rows of an export request: spans, log records and data points, one for each row of a table.

Names of columns follow OTLP's messages (``opentelemetry/proto/*/v1``).  Attributes are maps of text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from icemigrate.otlp.export_requests import decode_request
from icemigrate.otlp.payload_fields import (
    Message,
    UnreadablePayload,
    any_text,
    attributes,
    decimal,
    decimals,
    flag,
    hex_id,
    integer,
    integers,
    message,
    messages,
    microseconds,
    nanoseconds,
    text,
)
from icemigrate.wal.entries import EntryKind, PayloadEncoding

TelemetryRow: TypeAlias = dict[str, Any]
TRACE_ID_SIZE, SPAN_ID_SIZE = 16, 8
"""In bytes."""


def telemetry_rows(request: Message, kind: EntryKind) -> Iterator[TelemetryRow]:
    """The rows of a request, by the names of columns; times are microseconds since 1970.

    :raises UnreadablePayload: a part of it is not what the protocol says.
    """
    return _ROWS[kind](request)


def is_readable(payload: bytes, kind: EntryKind, encoding: PayloadEncoding) -> bool:
    """Whether a payload is an export request of its kind."""
    try:
        for _ in telemetry_rows(decode_request(payload, kind, encoding), kind):
            pass
    except UnreadablePayload:
        return False
    return True


def _span_rows(request: Message) -> Iterator[TelemetryRow]:
    for origin, span in _items(request, "resourceSpans", "scopeSpans", "spans"):
        start, end = nanoseconds(span, "startTimeUnixNano"), nanoseconds(span, "endTimeUnixNano")
        status = message(span, "status")
        yield {
            **origin,
            "trace_id": hex_id(span, "traceId", TRACE_ID_SIZE),
            "span_id": hex_id(span, "spanId", SPAN_ID_SIZE),
            "parent_span_id": hex_id(span, "parentSpanId", SPAN_ID_SIZE),
            "trace_state": text(span, "traceState"),
            "flags": _flags(span),
            "name": text(span, "name"),
            "kind": integer(span, "kind", 32) or 0,
            "start_time": microseconds(start),
            "end_time": microseconds(end),
            "duration_ns": None if start is None or end is None else end - start,
            "status_code": integer(status, "code", 32) or 0,
            "status_message": text(status, "message"),
            "attributes": attributes(span),
            "events": [_event(one) for one in messages(span, "events")],
            "links": [_link(one) for one in messages(span, "links")],
        }


def _event(event: Message) -> TelemetryRow:
    return {
        "time": microseconds(nanoseconds(event, "timeUnixNano")),
        "name": text(event, "name"),
        "attributes": attributes(event),
    }


def _link(link: Message) -> TelemetryRow:
    return {
        "trace_id": hex_id(link, "traceId", TRACE_ID_SIZE),
        "span_id": hex_id(link, "spanId", SPAN_ID_SIZE),
        "trace_state": text(link, "traceState"),
        "attributes": attributes(link),
    }


def _log_rows(request: Message) -> Iterator[TelemetryRow]:
    for origin, record in _items(request, "resourceLogs", "scopeLogs", "logRecords"):
        at, observed = nanoseconds(record, "timeUnixNano"), nanoseconds(record, "observedTimeUnixNano")
        yield {
            **origin,
            # OTLP: a record without a time has the time at which it was observed.
            "time": microseconds(observed if at is None else at),
            "observed_time": microseconds(observed),
            "severity_number": integer(record, "severityNumber", 32) or 0,
            "severity_text": text(record, "severityText"),
            "event_name": text(record, "eventName"),
            "body": any_text(message(record, "body")),
            "attributes": attributes(record),
            "trace_id": hex_id(record, "traceId", TRACE_ID_SIZE),
            "span_id": hex_id(record, "spanId", SPAN_ID_SIZE),
            "flags": _flags(record),
        }


def _metric_rows(request: Message) -> Iterator[TelemetryRow]:
    for origin, metric in _items(request, "resourceMetrics", "scopeMetrics", "metrics"):
        for type_ in METRIC_TYPES:
            if type_ not in metric:
                continue
            data = message(metric, type_)
            for point in messages(data, "dataPoints"):
                yield {
                    **origin,
                    "name": text(metric, "name"),
                    "description": text(metric, "description"),
                    "unit": text(metric, "unit"),
                    "type": METRIC_TYPES[type_],
                    "temporality": integer(data, "aggregationTemporality", 32) or 0,
                    "is_monotonic": flag(data, "isMonotonic"),
                    **_point(point),
                }


METRIC_TYPES: Mapping[str, str] = {
    "gauge": "gauge",
    "sum": "sum",
    "histogram": "histogram",
    "exponentialHistogram": "exponential_histogram",
    "summary": "summary",
}
"""Names of types by the fields of OTLP JSON; Protocol Buffers have these names, too."""


def _point(point: Message) -> TelemetryRow:
    whole = integer(point, "asInt")
    return {
        "time": microseconds(nanoseconds(point, "timeUnixNano")),
        "start_time": microseconds(nanoseconds(point, "startTimeUnixNano")),
        "value": decimal(point, "asDouble") if whole is None else float(whole),
        "int_value": whole,
        "count": integer(point, "count"),
        "sum": decimal(point, "sum"),
        "min": decimal(point, "min"),
        "max": decimal(point, "max"),
        "bucket_counts": integers(point, "bucketCounts"),
        "explicit_bounds": decimals(point, "explicitBounds"),
        "scale": integer(point, "scale", 32),
        "zero_count": integer(point, "zeroCount"),
        "positive": _buckets(message(point, "positive")),
        "negative": _buckets(message(point, "negative")),
        "quantiles": [
            {"quantile": decimal(one, "quantile") or 0.0, "value": decimal(one, "value") or 0.0}
            for one in messages(point, "quantileValues")
        ],
        "attributes": attributes(point),
        "flags": _flags(point),
    }


def _buckets(buckets: Message) -> TelemetryRow | None:
    """One side of an exponential histogram; ``None`` where it has no buckets."""
    offset, counts = integer(buckets, "offset", 32) or 0, integers(buckets, "bucketCounts")
    return {"offset": offset, "counts": counts} if offset or counts else None


def _flags(item: Message) -> int:
    return integer(item, "flags", 33) or 0


def _items(
    request: Message, resources: str, scopes: str, items: str
) -> Iterator[tuple[TelemetryRow, Message]]:
    """Each item with the columns of its resource and its scope."""
    for resource_part in messages(request, resources):
        resource = attributes(message(resource_part, "resource"))
        for scope_part in messages(resource_part, scopes):
            scope = message(scope_part, "scope")
            origin = {
                "service_name": resource.get("service.name"),
                "resource_attributes": resource,
                "scope_name": text(scope, "name"),
                "scope_version": text(scope, "version"),
                "scope_attributes": attributes(scope),
            }
            for item in messages(scope_part, items):
                yield origin, item


_ROWS: Mapping[EntryKind, Callable[[Message], Iterator[TelemetryRow]]] = {
    EntryKind.TRACES: _span_rows,
    EntryKind.LOGS: _log_rows,
    EntryKind.METRICS: _metric_rows,
}
