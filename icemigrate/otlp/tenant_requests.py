"""Splits an export request of OTLP by tenant, where the tenant is not named beside the request.

A file has no header with the tenant.  It is the same for all requests, or each resource names it in an
attribute; then a request with the resources of several tenants becomes one request for each of them.  The
bytes of resources are kept as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.otlp.export_requests import empty_request, parse_protobuf
from icemigrate.otlp.payload_fields import UnreadablePayload
from icemigrate.wal.entries import (
    LONGEST_PAYLOAD,
    EntryKind,
    PayloadEncoding,
    UnreadableBytes,
    is_tenant_id,
    tenant_problem,
)

DEFAULT_ATTRIBUTE = "tenant.id"
_RESOURCES = {
    "resourceSpans": EntryKind.TRACES,
    "resourceLogs": EntryKind.LOGS,
    "resourceMetrics": EntryKind.METRICS,
}
_REQUEST_BEGINS = re.compile(rb'\{"resource(?:Spans|Logs|Metrics)":')
"""How the Collector begins a request; quotes in a text are escaped, so no text contains it."""
_FIELDS = {
    EntryKind.TRACES: "resource_spans",
    EntryKind.LOGS: "resource_logs",
    EntryKind.METRICS: "resource_metrics",
}


class TenantRule(Frozen):
    """Where the tenant and the kind of a request come from.

    :param tenant: of all requests; ``None`` where the resources name it.
    :param attribute: of a resource, with the tenant's id.
    :param kind: of requests in Protocol Buffers, which do not name it.
    """

    tenant: str | None = None
    attribute: str = DEFAULT_ATTRIBUTE
    kind: EntryKind | None = None


class TenantRequest(Frozen):
    """An export request with the resources of one tenant."""

    tenant: str
    kind: EntryKind
    payload: bytes
    encoding: PayloadEncoding


RequestPart: TypeAlias = "TenantRequest | UnreadableBytes"


class _Unsuitable(Exception):
    """A request, or a part of it, that has no tenant or kind; the text is a clause."""


def split_request(payload: bytes, rule: TenantRule) -> Iterator[RequestPart]:
    """The requests of single tenants in a request; none where it has no resource.

    :raises UsageError: the request is in Protocol Buffers, and the rule names no kind.
    :raises MissingExtra: the package for Protocol Buffers is not installed.
    """
    if len(payload) > LONGEST_PAYLOAD:
        problem = f"a part of a request that is longer than {LONGEST_PAYLOAD:,} bytes"
        for begin in range(0, len(payload), LONGEST_PAYLOAD):
            yield UnreadableBytes(payload[begin : begin + LONGEST_PAYLOAD], problem)
        return
    if is_protobuf(payload):
        yield from _split_protobuf(payload, rule)
        return
    try:
        request = msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        yield from _after_torn_request(payload, rule, f"the request is no JSON object: {error}")
        return
    kinds = _RESOURCES.keys() & request.keys()
    if request and not kinds:
        names = ", ".join(f"`{name}`" for name in _RESOURCES)
        yield UnreadableBytes(payload, f"the request has none of {names}, but `{next(iter(request))[:60]}`")
    for name in sorted(kinds):
        yield from _split_json(payload if len(request) == 1 else None, name, request[name], rule)


def is_protobuf(payload: bytes) -> bool:
    """Whether a request is in Protocol Buffers: then it begins with its first field."""
    return payload[:1] == b"\x0a"


def require_kind(rule: TenantRule) -> EntryKind:
    """The kind of requests in Protocol Buffers.

    :raises UsageError: the rule names none.
    """
    if rule.kind is None:
        raise UsageError(
            "the requests are in Protocol Buffers, which do not name their kind",
            "add `kind=traces`, `kind=logs` or `kind=metrics` to the source",
        )
    return rule.kind


def _after_torn_request(payload: bytes, rule: TenantRule, problem: str) -> Iterator[RequestPart]:
    """The parts of a line that is no request: half a one, which a killed process left, and a whole one."""
    for match in [*_REQUEST_BEGINS.finditer(payload, 1)][-1:]:
        torn, rest = payload[: match.start()], payload[match.start() :]
        with suppress(msgspec.DecodeError):
            msgspec.json.decode(rest, type=dict[str, msgspec.Raw])
            yield UnreadableBytes(torn, problem)
            yield from split_request(rest, rule)
            return
    yield UnreadableBytes(payload, problem)


class _Value(msgspec.Struct):
    stringValue: str | None = None  # noqa: N815
    intValue: int | str | None = None  # noqa: N815


class _Attribute(msgspec.Struct):
    key: str = ""
    value: _Value | None = None


class _Resource(msgspec.Struct):
    attributes: list[_Attribute] | None = None


class _ResourcePart(msgspec.Struct):
    resource: _Resource | None = None


_decode_part = msgspec.json.Decoder(_ResourcePart).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw] | None).decode


def _split_json(whole: bytes | None, name: str, raw: msgspec.Raw, rule: TenantRule) -> Iterator[RequestPart]:
    """The requests of one kind.

    :param whole: the request, where it has nothing else.
    """

    def request(parts: list[bytes]) -> bytes:
        return b'{"%b":[%b]}' % (name.encode(), b",".join(parts))

    def attributes(part: bytes) -> Iterator[tuple[str, str | None]]:
        try:
            found = _decode_part(part)
        except msgspec.ValidationError as error:
            raise _Unsuitable(f"a resource cannot be read: {error}") from None
        listed = found.resource.attributes if found.resource is not None else None
        for one in listed or ():
            value = one.value or _Value()
            number = None if value.intValue is None else str(value.intValue)
            yield one.key, value.stringValue if number is None else number

    try:
        parts = [bytes(part) for part in _decode_list(raw) or ()]
    except msgspec.ValidationError:
        yield UnreadableBytes(whole or request([bytes(raw)]), f"`{name}` is no list")
        return
    yield from _grouped(parts, attributes, request, rule, _RESOURCES[name], whole)


def _split_protobuf(payload: bytes, rule: TenantRule) -> Iterator[RequestPart]:
    kind = require_kind(rule)
    try:
        found = parse_protobuf(payload, kind)
    except UnreadablePayload as error:
        yield UnreadableBytes(payload, error.message)
        return
    field = _FIELDS[kind]

    def request(parts: list[Any]) -> bytes:
        made = empty_request(kind)
        getattr(made, field).extend(parts)
        data: bytes = made.SerializeToString()
        return data

    def attributes(part: Any) -> Iterator[tuple[str, str | None]]:
        for one in part.resource.attributes:
            value = one.value
            is_number = value.WhichOneof("value") == "int_value"
            yield one.key, str(value.int_value) if is_number else value.string_value or None

    yield from _grouped(list(getattr(found, field)), attributes, request, rule, kind, payload)


def _grouped(
    parts: list[Any],
    attributes: Callable[[Any], Iterator[tuple[str, str | None]]],
    request: Callable[[list[Any]], bytes],
    rule: TenantRule,
    kind: EntryKind,
    whole: bytes | None,
) -> Iterator[RequestPart]:
    """The requests of the tenants of parts.

    :param parts: resources with their telemetry.
    :param attributes: the names and texts of a part's attributes.
    :param request: encodes parts as a request.
    :param whole: the request of all parts.
    """
    tenants, problems = dict[str, list[Any]](), dict[str, list[Any]]()
    for part in parts:
        try:
            tenants.setdefault(_tenant(part, attributes, rule), []).append(part)
        except _Unsuitable as error:
            problems.setdefault(str(error), []).append(part)
    is_one = whole is not None and len(tenants) + len(problems) == 1
    for problem, found in problems.items():
        yield UnreadableBytes(whole if is_one and whole else request(found), problem)
    encoding = PayloadEncoding.OTLP_PROTOBUF if whole and is_protobuf(whole) else PayloadEncoding.OTLP_JSON
    for tenant, found in tenants.items():
        yield TenantRequest(tenant, kind, whole if is_one and whole else request(found), encoding)


def _tenant(
    part: Any, attributes: Callable[[Any], Iterator[tuple[str, str | None]]], rule: TenantRule
) -> str:
    """The tenant of a part.

    :raises _Unsuitable: it has none, or an invalid one.
    """
    tenant = rule.tenant
    if tenant is None:
        # OTLP: names are unique.  The last one is used, as in the map of a row.
        tenant = next((value for key, value in reversed([*attributes(part)]) if key == rule.attribute), None)
        if tenant is None:
            raise _Unsuitable(f"a resource has no text in the attribute `{rule.attribute}`")
    if not is_tenant_id(tenant):
        raise _Unsuitable(tenant_problem(tenant))
    return tenant
