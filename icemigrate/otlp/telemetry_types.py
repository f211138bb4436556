"""The columns of telemetry with their types, in Iceberg's notation.

A table declares those that it wants, and may declare wider types.
"""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.wal.entries import EntryKind

_ATTRIBUTES = "map<string, string>"
_ORIGIN = {
    "service_name": "string",
    "resource_attributes": _ATTRIBUTES,
    "scope_name": "string",
    "scope_version": "string",
    "scope_attributes": _ATTRIBUTES,
}
_BUCKETS = "struct<offset: int, counts: list<long>>"

TELEMETRY_TYPES: Mapping[EntryKind, Mapping[str, str]] = {
    EntryKind.TRACES: {
        **_ORIGIN,
        "trace_id": "fixed[16]",
        "span_id": "fixed[8]",
        "parent_span_id": "fixed[8]",
        "trace_state": "string",
        "flags": "long",
        "name": "string",
        "kind": "int",
        "start_time": "timestamptz",
        "end_time": "timestamptz",
        "duration_ns": "long",
        "status_code": "int",
        "status_message": "string",
        "attributes": _ATTRIBUTES,
        "events": f"list<struct<time: timestamptz, name: string, attributes: {_ATTRIBUTES}>>",
        "links": "list<struct<trace_id: fixed[16], span_id: fixed[8], trace_state: string, "
        f"attributes: {_ATTRIBUTES}>>",
    },
    EntryKind.LOGS: {
        **_ORIGIN,
        "time": "timestamptz",
        "observed_time": "timestamptz",
        "severity_number": "int",
        "severity_text": "string",
        "event_name": "string",
        "body": "string",
        "attributes": _ATTRIBUTES,
        "trace_id": "fixed[16]",
        "span_id": "fixed[8]",
        "flags": "long",
    },
    EntryKind.METRICS: {
        **_ORIGIN,
        "name": "string",
        "description": "string",
        "unit": "string",
        "type": "string",
        "temporality": "int",
        "is_monotonic": "boolean",
        "time": "timestamptz",
        "start_time": "timestamptz",
        "value": "double",
        "int_value": "long",
        "count": "long",
        "sum": "double",
        "min": "double",
        "max": "double",
        "bucket_counts": "list<long>",
        "explicit_bounds": "list<double>",
        "scale": "int",
        "zero_count": "long",
        "positive": _BUCKETS,
        "negative": _BUCKETS,
        "quantiles": "list<struct<quantile: double, value: double>>",
        "attributes": _ATTRIBUTES,
        "flags": "long",
    },
}
