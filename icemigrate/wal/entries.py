"""Entries of the log: one payload of one tenant."""

from __future__ import annotations

import re
from enum import Enum
from numbers import Integral
from typing import TypeVar

from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen

LONGEST_PAYLOAD = 64 * 1024 * 1024
"""In bytes: a reader holds a payload in memory."""
LONGEST_TENANT = 128
_TENANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
TENANT_RULE = f"use 1 to {LONGEST_TENANT} ASCII letters, digits, `_` and `-`; `-` cannot be the first one"
"""The hint of messages about other ids: they could leave their part of a table's name."""
_TIME_RULE = "give nanoseconds since 1970-01-01, such as `time.time_ns()`"
LATEST_TIME_NS = 2**63 - 1
"""Of an entry: columns of Arrow and Spark have signed numbers of 64 bits."""


class BadEntry(UsageError):
    """An entry that no segment can have; nothing was written."""


class EntryKind(Enum):
    """What a payload describes, as OTLP divides it."""

    TRACES = "traces"
    LOGS = "logs"
    METRICS = "metrics"


class PayloadEncoding(Enum):
    """How a payload is encoded.

    OTLP specification, `JSON Protobuf Encoding
    <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>`_.
    """

    OTLP_JSON = "otlp_json"
    OTLP_PROTOBUF = "otlp_protobuf"


class Entry(Frozen):
    """One payload of one tenant.

    :param tenant: its id, which is part of the names of tables.
    :param time_ns: when the backend received it, in nanoseconds since 1970 (UTC).
    :param payload: an export request of OTLP.
    """

    tenant: str
    kind: EntryKind
    time_ns: int
    payload: bytes
    encoding: PayloadEncoding = PayloadEncoding.OTLP_JSON


class UnreadableBytes(Frozen):
    """Bytes of a source that are no entry, such as half a line; the quarantine gets them with the reason.

    :param payload: at most :data:`LONGEST_PAYLOAD` bytes.
    :param problem: why they are no entry, as a clause.
    """

    payload: bytes
    problem: str


def is_tenant_id(text: str) -> bool:
    """Whether a text can be the id of a tenant.

    It cannot leave the part of a table's name that it fills: it has no dot, slash, quote or space.
    """
    return len(text) <= LONGEST_TENANT and _TENANT.fullmatch(text) is not None


def tenant_problem(text: str) -> str:
    """Why a text cannot be the id of a tenant, as a clause."""
    return f"{text[:LONGEST_TENANT]!r} cannot be the id of a tenant"


_Member = TypeVar("_Member", bound=Enum)


def read_member(kind: type[_Member], given: object, what: str) -> _Member:
    """A member of an enumeration, given as itself or by its value.

    :param what: names it in the message.
    :raises BadEntry: the enumeration has no such member.
    """
    try:
        return kind(given)
    except ValueError:
        raise _no_member(kind, given, what) from None


def _no_member(kind: type[Enum], given: object, what: str) -> BadEntry:
    known = ", ".join(f"`{kind.__name__}.{one.name}`" for one in kind)
    return BadEntry(f"{given!r} is not {what} of an entry", f"give one of {known}")


def _require_types(entry: Entry) -> None:
    """Check the types, which the caller of an untyped program may have confused."""
    payload: object = entry.payload
    if isinstance(payload, str):
        raise BadEntry("the payload is a text, and an entry takes bytes", 'pass `payload.encode("utf-8")`')
    if not isinstance(payload, (bytes, bytearray)):
        raise BadEntry(
            f"the payload is a value of type `{type(payload).__name__}`, and an entry takes bytes",
            "pass the bytes of an export request",
        )
    tenant: object = entry.tenant
    if not isinstance(tenant, str):
        raise BadEntry(f"the tenant {tenant!r:.{LONGEST_TENANT}} is not a text", TENANT_RULE)
    time_ns: object = entry.time_ns
    if type(time_ns) is bool or not isinstance(time_ns, Integral):
        raise BadEntry(f"the time {time_ns!r:.40} is not a whole number", _TIME_RULE)
    kind: object = entry.kind
    encoding: object = entry.encoding
    if not isinstance(kind, EntryKind):
        raise _no_member(EntryKind, kind, "a kind")
    if not isinstance(encoding, PayloadEncoding):
        raise _no_member(PayloadEncoding, encoding, "an encoding")


def require_valid(entry: Entry) -> None:
    """Check an entry before it is written.

    :raises BadEntry: its tenant, time, kind, encoding or payload has another type, or is out of bounds.
    """
    _require_types(entry)
    if not is_tenant_id(entry.tenant):
        raise BadEntry(tenant_problem(entry.tenant), TENANT_RULE)
    if not 0 <= entry.time_ns <= LATEST_TIME_NS:
        raise BadEntry(
            f"the time {entry.time_ns} is not between 1970 and 2262",
            _TIME_RULE,
        )
    if not entry.payload or len(entry.payload) > LONGEST_PAYLOAD:
        raise BadEntry(
            f"the payload has {len(entry.payload):,} bytes, and an entry takes 1 to {LONGEST_PAYLOAD:,}",
            "split the export request into several entries",
        )
