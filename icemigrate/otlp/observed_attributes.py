"""The attributes of a request with the types of their values, which its columns do not have.

Names of maps are those of the columns.  Of several attributes of an item with the same name, the last one
counts, as in the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from icemigrate.otlp.attribute_columns import ATTRIBUTE_MAPS
from icemigrate.otlp.payload_fields import Message, message, messages
from icemigrate.otlp.request_forms import VALUE_TYPES, RequestForm
from icemigrate.otlp.telemetry_rows import METRIC_TYPES
from icemigrate.wal.entries import EntryKind

ObserveAttribute: TypeAlias = Callable[[str, str, str, int], None]
"""Called with a map, the name of an attribute, the type of its value, and how many rows have it."""


class RequestGroup(Protocol):
    """The items of one resource and scope."""

    @property
    def resource(self) -> Any: ...
    @property
    def scope(self) -> Any: ...
    @property
    def items(self) -> Sequence[Any]: ...


def observe_groups(form: RequestForm, groups: Iterable[RequestGroup], observe: ObserveAttribute) -> None:
    """Report the attributes of a request in the common form."""
    for group in groups:
        count = len(group.items)
        if not count:
            continue
        for map_, part in (("resource_attributes", group.resource), ("scope_attributes", group.scope)):
            for name, value in {one.key: one.value for one in part.attributes}.items():
                observe(map_, name, form.type_of(value), count)
        for item in group.items:
            for name, value in {one.key: one.value for one in _attributes(item)}.items():
                observe("attributes", name, form.type_of(value), 1)


def _attributes(item: Any) -> Any:
    """Those of a span or a log record, or of the point of a metric."""
    return getattr(item, "point", item).attributes


def observe_request(request: Message, kind: EntryKind, observe: ObserveAttribute) -> None:
    """Report the attributes of a request in the JSON form, whose rows can be read."""
    resources, scopes, items = _FIELDS[kind]
    for resource_part in messages(request, resources):
        resource = dict(_typed(message(resource_part, "resource")))
        for scope_part in messages(resource_part, scopes):
            scope = dict(_typed(message(scope_part, "scope")))
            listed = messages(scope_part, items)
            for item in _points(listed) if kind is EntryKind.METRICS else listed:
                of_item = dict(_typed(item))
                for map_, types in zip(ATTRIBUTE_MAPS, (of_item, resource, scope), strict=True):
                    for name, type_ in types.items():
                        observe(map_, name, type_, 1)


_FIELDS = {
    EntryKind.TRACES: ("resourceSpans", "scopeSpans", "spans"),
    EntryKind.LOGS: ("resourceLogs", "scopeLogs", "logRecords"),
    EntryKind.METRICS: ("resourceMetrics", "scopeMetrics", "metrics"),
}


def _points(metrics: Iterable[Message]) -> Iterator[Message]:
    for metric in metrics:
        for type_ in METRIC_TYPES:
            yield from messages(message(metric, type_), "dataPoints")


def _typed(part: Message) -> Iterator[tuple[str, str]]:
    for one in messages(part, "attributes"):
        yield one.get("key", ""), _type_of(message(one, "value"))


def _camel(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(map(str.title, others))


_JSON_TYPES: Mapping[str, str] = {_camel(field): type_ for field, type_ in VALUE_TYPES.items()}


def _type_of(value: Message) -> str:
    return next((type_ for name, type_ in _JSON_TYPES.items() if value.get(name) is not None), "empty")
