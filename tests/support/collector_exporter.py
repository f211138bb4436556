"""The Collector's file exporter: writes files as its settings say, and rotates them."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def json_request(*spans: tuple[str | None, int]) -> bytes:
    """A request with a resource for each tenant and number, as the Collector writes JSON."""
    resources = [
        {
            "resource": {"attributes": _tenant(tenant)},
            "scopeSpans": [{"scope": {}, "spans": [{"spanId": f"{n:016x}", "startTimeUnixNano": "1"}]}],
        }
        for tenant, n in spans
    ]
    return json.dumps({"resourceSpans": resources}, separators=(",", ":")).encode()


def _tenant(tenant: str | None) -> list[dict[str, Any]]:
    return [] if tenant is None else [{"key": "tenant.id", "value": {"stringValue": tenant}}]


def protobuf_request(*spans: tuple[str | None, int]) -> bytes:
    """The same request in Protocol Buffers."""
    request = ExportTraceServiceRequest()
    for tenant, number in spans:
        resource = request.resource_spans.add()
        if tenant is not None:
            resource.resource.attributes.add(key="tenant.id").value.string_value = tenant
        span = resource.scope_spans.add().spans.add()
        span.span_id, span.start_time_unix_nano = number.to_bytes(8, "big"), 1
    data: bytes = request.SerializeToString()
    return data


def frame(content: bytes) -> bytes:
    """A frame of Zstandard with the checksum of its content, which the exporter writes and Arrow does not."""
    compressed: bytes = pa.Codec("zstd").compress(content, asbytes=True)
    checksum = _xxh64(content).to_bytes(8, "little")[:4]
    return compressed[:4] + bytes([compressed[4] | 4]) + compressed[5:] + checksum


def _xxh64(data: bytes) -> int:
    """XXH64 with the seed 0, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md."""
    one, two, three = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    four, five, mask = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5, 2**64 - 1

    def turn(value: int, bits: int) -> int:
        value &= mask
        return (value << bits | value >> 64 - bits) & mask

    def mixed(value: int, lane: int) -> int:
        return turn(value + lane * two, 31) * one & mask

    at, found = 0, five
    if len(data) >= 32:
        sums = [one + two, two, 0, -one]
        for at in range(0, len(data) - 31, 32):
            lanes = struct.unpack_from("<4Q", data, at)
            sums = [mixed(*pair) for pair in zip(sums, lanes, strict=True)]
        at += 32
        found = sum(map(turn, sums, (1, 7, 12, 18)))
        for value in sums:
            found = (found ^ mixed(0, value)) * one + four
    found += len(data)
    for (lane,) in struct.iter_unpack("<Q", data[at : len(data) - len(data) % 8]):
        found = turn(found ^ mixed(0, lane), 27) * one + four
    at = len(data) - len(data) % 8
    if len(data) - at >= 4:
        found = turn(found ^ struct.unpack_from("<I", data, at)[0] * one, 23) * two + three
        at += 4
    for byte in data[at:]:
        found = turn(found ^ byte * five, 11) * one
    found = ((found & mask) ^ (found & mask) >> 33) * two & mask
    found = (found ^ found >> 29) * three & mask
    return found ^ found >> 32


def with_length(content: bytes) -> bytes:
    """A record after its length."""
    return len(content).to_bytes(4, "big") + content


FORMATS: dict[str, tuple[Callable[..., bytes], Callable[[bytes], bytes]]] = {
    "json": (json_request, lambda data: data + b"\n"),
    "proto": (protobuf_request, with_length),
    "json zstd": (json_request, lambda data: with_length(frame(data))),
    "proto zstd": (protobuf_request, lambda data: with_length(frame(data))),
    "json native": (json_request, lambda data: frame(data) + frame(b"\n")),
    "json native flushed": (json_request, lambda data: frame(data + b"\n")),
    "proto native": (protobuf_request, lambda data: frame(with_length(data))),
}
"""How a request is encoded, and written, by the settings of the exporter."""


class Exporter:
    """Appends records to a file, and rotates it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rotations = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def write(self, data: bytes) -> None:
        """Append bytes."""
        with self.path.open("ab") as stream:
            stream.write(data)

    def rotate(self) -> Path:
        """Give the file another name, and create a new one."""
        time = f"2026-11-30T10-00-00.{self._rotations:03}"
        name = self.path.with_name(f"{self.path.stem}-{time}-size{self.path.suffix}")
        self._rotations += 1
        os.link(self.path, name)
        self.path.unlink()
        self.path.touch()
        return name
