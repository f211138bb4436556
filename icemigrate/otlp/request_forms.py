"""The two forms of a decoded request that are read column by column: typed structs of JSON, and messages of
Protocol Buffers.

Both have the same fields.  A form reads those whose values differ.
"""

from __future__ import annotations

import binascii
import json
import math
from collections.abc import Iterable
from functools import cache
from typing import Any, Protocol

from icemigrate.otlp.export_requests import parse_protobuf, protobuf_as_json
from icemigrate.otlp.payload_fields import any_text
from icemigrate.otlp.request_structs import decode_common_form
from icemigrate.wal.entries import EntryKind, PayloadEncoding

_LONGEST_NUMBER = 20
"""In characters, with a sign."""
VALUE_TYPES = {
    "string_value": "string",
    "bool_value": "boolean",
    "int_value": "long",
    "double_value": "double",
    "bytes_value": "bytes",
    "array_value": "list",
    "kvlist_value": "map",
}
"""The types of values by their fields; of several fields, the first one in this order counts."""


class UncommonForm(Exception):
    """A request that is read field by field, which also says what is wrong with it."""


class RequestForm(Protocol):
    """How fields are read.

    Each method raises :class:`UncommonForm` where a value is not of the common form.
    """

    def identifier(self, value: Any, size: int) -> bytes | None:
        """An id of a size in bytes; ``None`` where it is empty or all zero."""

    def whole(self, value: Any) -> int:
        """A whole number of at most 64 bits."""

    def optional(self, item: Any, name: str) -> Any:
        """A field of a message; ``None`` where it is missing."""

    def text_of(self, value: Any) -> str | None:
        """A value of any type as text."""

    def attributes(self, found: Iterable[Any]) -> dict[str, str]:
        """Attributes by name, each value as text."""

    def type_of(self, value: Any) -> str:
        """The type of a value: ``string``, ``boolean``, ``long``, ``double``, ``bytes``, ``list``, ``map`` or
        ``empty``.
        """


def decode_form(payload: bytes, kind: EntryKind, encoding: PayloadEncoding) -> tuple[RequestForm, Any]:
    """A decoded request and its form.

    :raises UncommonForm: it is not of the common form, or cannot be read at all.
    :raises MissingExtra: the package for Protocol Buffers is not installed.
    """
    if encoding is PayloadEncoding.OTLP_PROTOBUF:
        message = parse_protobuf(payload, kind)
        form: RequestForm = _PROTOBUF
    else:
        message, form = decode_common_form(payload, kind), _JSON
    if message is None:
        raise UncommonForm
    return form, message


class _JsonForm:
    """See :mod:`icemigrate.otlp.request_structs`."""

    def identifier(self, value: str, size: int) -> bytes | None:
        if not value:
            return None
        try:
            found = binascii.unhexlify(value)
        except ValueError:
            raise UncommonForm from None
        return _identifier(found, size)

    def whole(self, value: int | str) -> int:
        if isinstance(value, str):
            digits = value[1:] if value.startswith("-") else value
            if len(value) > _LONGEST_NUMBER or not (digits.isascii() and digits.isdigit()):
                raise UncommonForm
            value = int(value)
        return _within(value)

    def optional(self, item: Any, name: str) -> Any:
        return getattr(item, name)

    def text_of(self, value: Any) -> str | None:
        if value is None:
            return None
        if (text := value.string_value) is not None:
            return str(text)
        if value.bool_value is not None:
            return "true" if value.bool_value else "false"
        if value.int_value is not None:
            return str(self.whole(value.int_value))
        if value.double_value is not None:
            return _text_of_double(value.double_value)
        nested = {
            "bytesValue": value.bytes_value,
            "arrayValue": value.array_value,
            "kvlistValue": value.kvlist_value,
        }
        return any_text(nested)

    def attributes(self, found: Iterable[Any]) -> dict[str, str]:
        return {
            one.key: text
            if (value := one.value) is not None and (text := value.string_value) is not None
            else self.text_of(value) or ""
            for one in found
        }

    def type_of(self, value: Any) -> str:
        if value is not None:
            for name, type_ in VALUE_TYPES.items():
                if getattr(value, name) is not None:
                    return type_
        return "empty"


class _ProtobufForm:
    """Messages of the package ``opentelemetry-proto``."""

    def identifier(self, value: bytes, size: int) -> bytes | None:
        return _identifier(value, size) if value else None

    def whole(self, value: int) -> int:
        return _within(value)

    def optional(self, item: Any, name: str) -> Any:
        has_presence = _fields(item.DESCRIPTOR).get(name)
        if has_presence is None or (has_presence and not item.HasField(name)):
            return None
        # A number of zero that has no presence is not written.
        return getattr(item, name) if has_presence else getattr(item, name) or None

    def text_of(self, value: Any) -> str | None:
        kind = value.WhichOneof("value")
        if kind is None:
            return None
        if kind == "string_value":
            return str(value.string_value)
        if kind == "bool_value":
            return "true" if value.bool_value else "false"
        if kind == "int_value":
            return str(value.int_value)
        if kind == "double_value" and math.isfinite(value.double_value):
            return json.dumps(value.double_value)
        return any_text(protobuf_as_json(value))

    def attributes(self, found: Iterable[Any]) -> dict[str, str]:
        return {one.key: self.text_of(one.value) or "" for one in found}

    def type_of(self, value: Any) -> str:
        return VALUE_TYPES.get(value.WhichOneof("value"), "empty")


_JSON, _PROTOBUF = _JsonForm(), _ProtobufForm()


@cache
def _fields(descriptor: Any) -> dict[str, bool]:
    """The fields of a kind of message, and whether a message knows that it has them."""
    return {field.name: field.has_presence for field in descriptor.fields}


def _identifier(found: bytes, size: int) -> bytes | None:
    if len(found) != size:
        raise UncommonForm
    return found if any(found) else None


def _within(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise UncommonForm
    return number


def _text_of_double(number: float) -> str:
    if not math.isfinite(number):
        raise UncommonForm
    return json.dumps(number)
