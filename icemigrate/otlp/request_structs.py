"""Export requests as typed structs: the common form of OTLP JSON, which is decoded fastest.

The common form has each field with the type that exporters write.  What differs, such as a number of 32 bits
as a string, is no error: :mod:`icemigrate.otlp.payload_fields` reads it.  The names are those of Protocol
Buffers, so that a column is read from both encodings by the same function.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from icemigrate.frozen import Frozen
from icemigrate.wal.entries import EntryKind

_Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
_Int64: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | str
_Flags: TypeAlias = Annotated[int, Meta(ge=-(2**32), lt=2**32)]


class _Message(Frozen, gc=False, rename="camel"):
    """A message without cycles, so that the garbage collector need not see it."""


class AnyValue(_Message):
    """A value of an attribute, or the body of a log record."""

    string_value: str | None = None
    bool_value: bool | None = None
    int_value: _Int64 | None = None
    double_value: float | None = None
    bytes_value: Any = None
    array_value: Any = None
    kvlist_value: Any = None


class KeyValue(_Message):
    """An attribute."""

    key: str = ""
    value: AnyValue | None = None


class Resource(_Message):
    """What sends telemetry."""

    attributes: tuple[KeyValue, ...] = ()


class Scope(_Message):
    """The library that makes telemetry."""

    name: str = ""
    version: str = ""
    attributes: tuple[KeyValue, ...] = ()


class SpanStatus(_Message):
    """How a span ended."""

    code: _Int32 = 0
    message: str = ""


class SpanEvent(_Message):
    """A moment of a span."""

    time_unix_nano: _Int64 = 0
    name: str = ""
    attributes: tuple[KeyValue, ...] = ()


class SpanLink(_Message):
    """A span that a span refers to."""

    trace_id: str = ""
    span_id: str = ""
    trace_state: str = ""
    attributes: tuple[KeyValue, ...] = ()


class Span(_Message):
    """A part of a trace."""

    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    trace_state: str = ""
    flags: _Flags = 0
    name: str = ""
    kind: _Int32 = 0
    start_time_unix_nano: _Int64 = 0
    end_time_unix_nano: _Int64 = 0
    attributes: tuple[KeyValue, ...] = ()
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    status: SpanStatus = SpanStatus()


class LogRecord(_Message):
    """A line of a log, or an event."""

    time_unix_nano: _Int64 = 0
    observed_time_unix_nano: _Int64 = 0
    severity_number: _Int32 = 0
    severity_text: str = ""
    event_name: str = ""
    body: AnyValue | None = None
    attributes: tuple[KeyValue, ...] = ()
    trace_id: str = ""
    span_id: str = ""
    flags: _Flags = 0


class Buckets(_Message):
    """One side of an exponential histogram."""

    offset: _Int32 = 0
    bucket_counts: tuple[_Int64, ...] = ()


class Quantile(_Message):
    """A quantile of a summary."""

    quantile: float = 0.0
    value: float = 0.0


class DataPoint(_Message):
    """A point of a metric of any type."""

    time_unix_nano: _Int64 = 0
    start_time_unix_nano: _Int64 = 0
    as_double: float | None = None
    as_int: _Int64 | None = None
    count: _Int64 | None = None
    sum: float | None = None
    min: float | None = None
    max: float | None = None
    bucket_counts: tuple[_Int64, ...] = ()
    explicit_bounds: tuple[float, ...] = ()
    scale: _Int32 | None = None
    zero_count: _Int64 | None = None
    positive: Buckets | None = None
    negative: Buckets | None = None
    quantile_values: tuple[Quantile, ...] = ()
    attributes: tuple[KeyValue, ...] = ()
    flags: _Flags = 0


class MetricData(_Message):
    """The points of a metric."""

    data_points: tuple[DataPoint, ...] = ()
    aggregation_temporality: _Int32 = 0
    is_monotonic: bool = False


class Metric(_Message):
    """A metric; its type is the field that it has."""

    name: str = ""
    description: str = ""
    unit: str = ""
    gauge: MetricData | None = None
    sum: MetricData | None = None
    histogram: MetricData | None = None
    exponential_histogram: MetricData | None = None
    summary: MetricData | None = None


class ScopeSpans(_Message):
    """The spans of a scope."""

    scope: Scope = Scope()
    spans: tuple[Span, ...] = ()


class ScopeLogs(_Message):
    """The log records of a scope."""

    scope: Scope = Scope()
    log_records: tuple[LogRecord, ...] = ()


class ScopeMetrics(_Message):
    """The metrics of a scope."""

    scope: Scope = Scope()
    metrics: tuple[Metric, ...] = ()


class ResourceSpans(_Message):
    """The spans of a resource."""

    resource: Resource = Resource()
    scope_spans: tuple[ScopeSpans, ...] = ()


class ResourceLogs(_Message):
    """The log records of a resource."""

    resource: Resource = Resource()
    scope_logs: tuple[ScopeLogs, ...] = ()


class ResourceMetrics(_Message):
    """The metrics of a resource."""

    resource: Resource = Resource()
    scope_metrics: tuple[ScopeMetrics, ...] = ()


class TracesRequest(_Message):
    """``ExportTraceServiceRequest``."""

    resource_spans: tuple[ResourceSpans, ...] = ()


class LogsRequest(_Message):
    """``ExportLogsServiceRequest``."""

    resource_logs: tuple[ResourceLogs, ...] = ()


class MetricsRequest(_Message):
    """``ExportMetricsServiceRequest``."""

    resource_metrics: tuple[ResourceMetrics, ...] = ()


_REQUESTS = {
    EntryKind.TRACES: TracesRequest,
    EntryKind.LOGS: LogsRequest,
    EntryKind.METRICS: MetricsRequest,
}


def decode_common_form(payload: bytes, kind: EntryKind) -> Any:
    """A request of OTLP JSON in the common form; ``None`` where it is not."""
    try:
        return _decoder(kind).decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


@cache
def _decoder(kind: EntryKind) -> Any:
    return msgspec.json.Decoder(_REQUESTS[kind])
