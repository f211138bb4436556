"""The columns of export requests in the common form: a list for each column, without a value for each row of
the others.

:func:`request_columns` gives the same values as the rows of :mod:`icemigrate.otlp.telemetry_rows`, which
reads any request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.otlp.export_requests import decode_request
from icemigrate.otlp.observed_attributes import ObserveAttribute, observe_groups, observe_request
from icemigrate.otlp.payload_fields import UnreadablePayload, microseconds
from icemigrate.otlp.request_forms import RequestForm, UncommonForm, decode_form
from icemigrate.otlp.telemetry_rows import METRIC_TYPES, SPAN_ID_SIZE, TRACE_ID_SIZE, telemetry_rows
from icemigrate.wal.entries import EntryKind, PayloadEncoding


class RepeatedValues(Frozen):
    """A column in which values repeat.

    :param values: without repetitions that follow each other.
    :param counts: how often each one is repeated.
    """

    values: list[Any]
    counts: list[int]


class RequestColumns(Frozen):
    """The columns of a request.

    :param columns: by name; times are microseconds since 1970.
    """

    rows: int
    columns: Mapping[str, list[Any] | RepeatedValues]


class _Group(Frozen):
    """The items of one resource and scope.

    :param items: spans, log records or metrics.
    """

    resource: Any
    scope: Any
    items: Sequence[Any]


class _Point(Frozen):
    """A data point with its metric."""

    metric: Any
    type: str
    data: Any
    point: Any


Column: TypeAlias = Callable[[RequestForm, Sequence[Any]], list[Any]]


def read_columns(
    payload: bytes, kind: EntryKind, encoding: PayloadEncoding, observe: ObserveAttribute | None = None
) -> RequestColumns:
    """The columns of any request, see :data:`~icemigrate.otlp.telemetry_types.TELEMETRY_TYPES`.

    :param observe: called with each attribute of a request that can be read.
    :raises UnreadablePayload: a part of it is not what the protocol says.
    :raises MissingExtra: the package for Protocol Buffers is not installed.
    """
    try:
        return common_columns(payload, kind, encoding, observe)
    except UncommonForm:
        request = decode_request(payload, kind, encoding)
        rows = list(telemetry_rows(request, kind))
    if observe is not None:
        observe_request(request, kind, observe)
    found = dict[str, list[Any] | RepeatedValues]()
    for name in (*_ORIGIN, *_COLUMNS[kind]):
        values = [row[name] for row in rows]
        found[name] = RepeatedValues(values, [1] * len(rows)) if name in _ORIGIN else values
    return RequestColumns(len(rows), found)


def common_columns(
    payload: bytes, kind: EntryKind, encoding: PayloadEncoding, observe: ObserveAttribute | None = None
) -> RequestColumns:
    """The columns of a request in the common form.

    All columns are read, whichever of them a table has: whether a request can be read does not depend on it.

    :param observe: as of :func:`read_columns`.
    :raises UncommonForm: the request is not of the common form, or cannot be read at all.
    :raises MissingExtra: the package for Protocol Buffers is not installed.
    """
    try:
        form, request = decode_form(payload, kind, encoding)
        groups = list(_GROUPS[kind](form, request))
        items: list[Any] = list(chain.from_iterable(group.items for group in groups))
        counts = [len(group.items) for group in groups]
        found: dict[str, list[Any] | RepeatedValues] = {
            name: RepeatedValues([read(form, group) for group in groups], counts)
            for name, read in _ORIGIN.items()
        }
        for name, column in _COLUMNS[kind].items():
            found[name] = column(form, items)
    except UnreadablePayload:
        raise UncommonForm from None
    if observe is not None:
        observe_groups(form, groups, observe)
    return RequestColumns(len(items), found)


def _span_groups(_form: RequestForm, request: Any) -> Iterator[_Group]:
    for part in request.resource_spans:
        for scope in part.scope_spans:
            yield _Group(part.resource, scope.scope, scope.spans)


def _log_groups(_form: RequestForm, request: Any) -> Iterator[_Group]:
    for part in request.resource_logs:
        for scope in part.scope_logs:
            yield _Group(part.resource, scope.scope, scope.log_records)


def _metric_groups(form: RequestForm, request: Any) -> Iterator[_Group]:
    for part in request.resource_metrics:
        for scope in part.scope_metrics:
            yield _Group(part.resource, scope.scope, list(_points(form, scope.metrics)))


def _points(form: RequestForm, metrics: Sequence[Any]) -> Iterator[_Point]:
    for metric in metrics:
        for type_ in METRIC_TYPES.values():
            data = form.optional(metric, type_)
            if data is not None:
                yield from (_Point(metric, type_, data, point) for point in data.data_points)


_GROUPS: Mapping[EntryKind, Callable[[RequestForm, Any], Iterator[_Group]]] = {
    EntryKind.TRACES: _span_groups,
    EntryKind.LOGS: _log_groups,
    EntryKind.METRICS: _metric_groups,
}

_ORIGIN: Mapping[str, Callable[[RequestForm, _Group], Any]] = {
    "service_name": lambda form, group: form.attributes(group.resource.attributes).get("service.name"),
    "resource_attributes": lambda form, group: form.attributes(group.resource.attributes),
    "scope_name": lambda _form, group: group.scope.name or None,
    "scope_version": lambda _form, group: group.scope.version or None,
    "scope_attributes": lambda form, group: form.attributes(group.scope.attributes),
}


def _identifiers(name: str, size: int) -> Column:
    return lambda form, items: [form.identifier(getattr(one, name), size) for one in items]


def _texts(name: str) -> Column:
    return lambda _form, items: [getattr(one, name) or None for one in items]


def _numbers(name: str) -> Column:
    return lambda _form, items: [getattr(one, name) for one in items]


def _times(name: str) -> Column:
    return lambda form, items: [microseconds(_nanoseconds(form, getattr(one, name))) for one in items]


def _attributes(form: RequestForm, items: Sequence[Any]) -> list[Any]:
    return [form.attributes(one.attributes) for one in items]


def _nanoseconds(form: RequestForm, value: Any) -> int | None:
    """A time; ``None`` where it is missing or zero, which means unknown."""
    found = form.whole(value)
    if found < 0:
        raise UncommonForm
    return found or None


def _durations(form: RequestForm, items: Sequence[Any]) -> list[Any]:
    return [
        None if start is None or end is None else end - start
        for start, end in (
            (_nanoseconds(form, one.start_time_unix_nano), _nanoseconds(form, one.end_time_unix_nano))
            for one in items
        )
    ]


def _events(form: RequestForm, items: Sequence[Any]) -> list[Any]:
    return [
        [
            {
                "time": microseconds(_nanoseconds(form, event.time_unix_nano)),
                "name": event.name or None,
                "attributes": form.attributes(event.attributes),
            }
            for event in one.events
        ]
        for one in items
    ]


def _links(form: RequestForm, items: Sequence[Any]) -> list[Any]:
    return [
        [
            {
                "trace_id": form.identifier(link.trace_id, TRACE_ID_SIZE),
                "span_id": form.identifier(link.span_id, SPAN_ID_SIZE),
                "trace_state": link.trace_state or None,
                "attributes": form.attributes(link.attributes),
            }
            for link in one.links
        ]
        for one in items
    ]


_SPAN_COLUMNS: Mapping[str, Column] = {
    "trace_id": _identifiers("trace_id", TRACE_ID_SIZE),
    "span_id": _identifiers("span_id", SPAN_ID_SIZE),
    "parent_span_id": _identifiers("parent_span_id", SPAN_ID_SIZE),
    "trace_state": _texts("trace_state"),
    "flags": _numbers("flags"),
    "name": _texts("name"),
    "kind": _numbers("kind"),
    "start_time": _times("start_time_unix_nano"),
    "end_time": _times("end_time_unix_nano"),
    "duration_ns": _durations,
    "status_code": lambda _form, items: [one.status.code for one in items],
    "status_message": lambda _form, items: [one.status.message or None for one in items],
    "attributes": _attributes,
    "events": _events,
    "links": _links,
}


def _log_times(form: RequestForm, items: Sequence[Any]) -> list[Any]:
    """OTLP: a record without a time has the time at which it was observed."""
    return [
        microseconds(
            _nanoseconds(form, one.time_unix_nano) or _nanoseconds(form, one.observed_time_unix_nano)
        )
        for one in items
    ]


_LOG_COLUMNS: Mapping[str, Column] = {
    "time": _log_times,
    "observed_time": _times("observed_time_unix_nano"),
    "severity_number": _numbers("severity_number"),
    "severity_text": _texts("severity_text"),
    "event_name": _texts("event_name"),
    "body": lambda form, items: [form.text_of(one.body) for one in items],
    "attributes": _attributes,
    "trace_id": _identifiers("trace_id", TRACE_ID_SIZE),
    "span_id": _identifiers("span_id", SPAN_ID_SIZE),
    "flags": _numbers("flags"),
}


def _of_metric(name: str) -> Column:
    return lambda _form, items: [getattr(one.metric, name) or None for one in items]


def _of_points(column: Column) -> Column:
    return lambda form, items: column(form, [one.point for one in items])


def _values(form: RequestForm, items: Sequence[Any]) -> list[Any]:
    """The value of a gauge or a sum, whole numbers too."""
    wholes = _INT_VALUES(form, items)
    return [
        form.optional(one.point, "as_double") if whole is None else float(whole)
        for one, whole in zip(items, wholes, strict=True)
    ]


def _optional(name: str) -> Column:
    return lambda form, items: [form.optional(one.point, name) for one in items]


def _optional_wholes(name: str) -> Column:
    return lambda form, items: [
        None if (found := form.optional(one.point, name)) is None else form.whole(found) for one in items
    ]


_INT_VALUES = _optional_wholes("as_int")


def _buckets(name: str) -> Column:
    """One side of exponential histograms; ``None`` where it has no buckets."""
    return lambda form, items: [
        {"offset": found.offset, "counts": list(map(form.whole, found.bucket_counts))}
        if (found := form.optional(one.point, name)) is not None and (found.offset or found.bucket_counts)
        else None
        for one in items
    ]


_METRIC_COLUMNS: Mapping[str, Column] = {
    "name": _of_metric("name"),
    "description": _of_metric("description"),
    "unit": _of_metric("unit"),
    "type": lambda _form, items: [one.type for one in items],
    "temporality": lambda _form, items: [getattr(one.data, "aggregation_temporality", 0) for one in items],
    "is_monotonic": lambda _form, items: [getattr(one.data, "is_monotonic", False) for one in items],
    "time": _of_points(_times("time_unix_nano")),
    "start_time": _of_points(_times("start_time_unix_nano")),
    "value": _values,
    "int_value": _INT_VALUES,
    "count": _optional_wholes("count"),
    "sum": _optional("sum"),
    "min": _optional("min"),
    "max": _optional("max"),
    "bucket_counts": lambda form, items: [
        list(map(form.whole, getattr(one.point, "bucket_counts", ()))) for one in items
    ],
    "explicit_bounds": lambda _form, items: [
        list(getattr(one.point, "explicit_bounds", ())) for one in items
    ],
    "scale": _optional("scale"),
    "zero_count": _optional_wholes("zero_count"),
    "positive": _buckets("positive"),
    "negative": _buckets("negative"),
    "quantiles": lambda _form, items: [
        [{"quantile": of.quantile, "value": of.value} for of in getattr(one.point, "quantile_values", ())]
        for one in items
    ],
    "attributes": _of_points(_attributes),
    "flags": _of_points(_numbers("flags")),
}

_COLUMNS: Mapping[EntryKind, Mapping[str, Column]] = {
    EntryKind.TRACES: _SPAN_COLUMNS,
    EntryKind.LOGS: _LOG_COLUMNS,
    EntryKind.METRICS: _METRIC_COLUMNS,
}
