"""Export requests of OTLP, decoded to the JSON form."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from icemigrate.errors import MissingExtra, extra_hint
from icemigrate.otlp.payload_fields import Message, UnreadablePayload
from icemigrate.wal.entries import EntryKind, PayloadEncoding

IDS = frozenset({"traceId", "spanId", "parentSpanId"})
"""Fields that OTLP JSON has as hexadecimal numbers, unlike the general JSON form of Protocol Buffers."""


def decode_request(payload: bytes, kind: EntryKind, encoding: PayloadEncoding) -> Message:
    """An export request in the JSON form.

    :raises UnreadablePayload: the payload is no message of this encoding.
    :raises MissingExtra: the package for Protocol Buffers is not installed.
    """
    if encoding is PayloadEncoding.OTLP_PROTOBUF:
        return _from_protobuf(payload, kind)
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadablePayload(f"the payload is no JSON: {error}") from None
    if not isinstance(found, Mapping):
        raise UnreadablePayload("the payload is no JSON object")
    return found


def _from_protobuf(payload: bytes, kind: EntryKind) -> Message:
    message = parse_protobuf(payload, kind)
    try:
        found = protobuf_as_json(message)
    except (ValueError, RecursionError) as error:
        raise _no_protobuf(error) from None
    _write_ids_as_hex(found)
    return found


def parse_protobuf(payload: bytes, kind: EntryKind) -> Any:
    """An export request as a message of ``opentelemetry-proto``.

    :raises UnreadablePayload: the payload is no such message.
    :raises MissingExtra: the package is not installed.
    """
    try:
        from google.protobuf.message import DecodeError

        request = empty_request(kind)
    except ImportError as error:
        raise MissingExtra("opentelemetry-proto is not installed", extra_hint("otlp")) from error
    try:
        request.ParseFromString(payload)
    except (DecodeError, ValueError, RecursionError) as error:
        raise _no_protobuf(error) from None
    return request


def protobuf_as_json(message: Any) -> dict[str, Any]:
    """A message in the general JSON form of Protocol Buffers, in which bytes are base64."""
    from google.protobuf.json_format import MessageToDict

    found: dict[str, Any] = MessageToDict(message, use_integers_for_enums=True)
    return found


def _no_protobuf(error: Exception) -> UnreadablePayload:
    return UnreadablePayload(f"the payload is no Protocol Buffers message: {error}")


def empty_request(kind: EntryKind) -> Any:
    """An export request without items, as a message of ``opentelemetry-proto``."""
    if kind is EntryKind.TRACES:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        return ExportTraceServiceRequest()
    if kind is EntryKind.LOGS:
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

        return ExportLogsServiceRequest()
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    return ExportMetricsServiceRequest()


def _write_ids_as_hex(node: Any) -> None:
    """Replace the base64 of ids, which the general JSON form has, by the hexadecimal form of OTLP."""
    if isinstance(node, list):
        for one in node:
            _write_ids_as_hex(one)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name in IDS and isinstance(value, str):
                node[name] = base64.b64decode(value).hex()
            else:
                _write_ids_as_hex(value)
