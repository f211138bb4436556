"""Rules about types, default values and identifier fields of columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from uuid import UUID

from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema import IndexedField, schema_index
from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.types import (
    Decimal,
    Fixed,
    JsonValue,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    children,
    is_nested,
    since_version,
)
from icemigrate.iceberg.validation.violation import ValidationContext, Violation, column_subject

MAX_PRECISION = 38
MAX_LENGTH = 2**31 - 1
"""The maximum length of ``fixed``: readers and writers use 32 bits for it (Java's ``Types.FixedType``)."""
_UNKNOWN = Primitive("unknown")


def types_of_the_format(view: ValidationContext) -> Iterator[Violation]:
    """The table's format version supports every type.

    Specification, "Primitive Types".
    """
    version = view.table.format_version
    for path, field in view.walked:
        since = since_version(field.type)
        if since > version:
            yield Violation(
                "type-needs-newer-format",
                column_subject(path, "type"),
                f"`{format_path(path)}` is of type {primitive_text(field.type)}, "
                f"which format version {version} does not support",
                f"set `format_version: {since}` for the table (this cannot be undone), "
                "or choose another type",
            )


def unknown_is_optional(view: ValidationContext) -> Iterator[Violation]:
    """A field of type ``unknown`` is optional.

    It is always null (specification, "Primitive Types").
    """
    for path, field in view.walked:
        if field.type == _UNKNOWN and field.required:
            yield Violation(
                "unknown-is-required",
                column_subject(path, "required"),
                f"`{format_path(path)}` is of type unknown, which is always null, so it cannot be required",
                "remove `required`, or choose another type",
            )


def unknown_is_written_beside_others(view: ValidationContext) -> Iterator[Violation]:
    """A table, list, map value or struct does not only have type ``unknown``.

    Parquet cannot store it. Iceberg accepts such a table, and every write to it fails ("Cannot convert
    element Parquet: unknown", "Cannot write a schema with an empty group").
    """
    if view.table.format_version < since_version(_UNKNOWN):
        return
    columns = view.table.schema.fields
    if columns and all(c.type == _UNKNOWN for c in columns):
        yield Violation(
            "unknown-not-written",
            ("columns",),
            f"table `{view.table.name}` has only columns of type unknown, which Parquet cannot store: "
            "Spark cannot write to it",
            "add a column of another type, or change the type of one of them",
            is_warning=True,
        )
    for path, field in view.walked:
        parts = children(field.type)
        if isinstance(field.type, Map):
            parts = parts[1:]
        if isinstance(field.type, (List, Map, Struct)) and parts and all(p.type == _UNKNOWN for p in parts):
            yield Violation(
                "unknown-not-written",
                column_subject(path, "type"),
                f"`{format_path(path)}` has only values of type unknown, which Parquet cannot store: "
                "Spark cannot write to the table",
                "choose another type, or add it when its type is known",
                is_warning=True,
            )


def sizes_in_range(view: ValidationContext) -> Iterator[Violation]:
    """Sizes of ``decimal`` and ``fixed`` are in range.

    A decimal has 1 to 38 digits, and its scale is not greater than its precision. A fixed has a length
    (specification, "Primitive Types").
    """
    for path, field in view.walked:
        if isinstance(field.type, Decimal):
            precision, scale = field.type.precision, field.type.scale
            right = 1 <= precision <= MAX_PRECISION and 0 <= scale <= precision
            rule = f"a precision from 1 to {MAX_PRECISION} and a scale from 0 to the precision"
        elif isinstance(field.type, Fixed):
            right = 0 < field.type.length <= MAX_LENGTH
            rule = f"a length from 1 to {MAX_LENGTH}"
        else:
            continue
        if not right:
            yield Violation(
                "size-out-of-range",
                column_subject(path, "type"),
                f"`{format_path(path)}` is of type {primitive_text(field.type)}, which is out of range",
                f"use {rule}",
            )


_FRACTION = {"timestamp": 6, "timestamptz": 6, "timestamp_ns": 9, "timestamptz_ns": 9, "time": 6}
_TIME = re.compile(r"(?P<whole>[^+.]*:[0-9][0-9])(?:\.(?P<fraction>[0-9]+))?(?P<zone>\+00:00)?\Z")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*\Z")
_DECIMAL = re.compile(r"-?([0-9]+)(?:\.([0-9]+))?\Z")
_INTEGERS = {"int": 31, "long": 63}


def defaults_of_the_format(view: ValidationContext) -> Iterator[Violation]:
    """Defaults need format version 3.

    Specification, "Default values".
    """
    version = view.table.format_version
    if version >= 3:
        return
    for path, field in view.walked:
        if field.initial_default is not None or field.write_default is not None:
            yield Violation(
                "default-needs-newer-format",
                column_subject(path, "default"),
                f"`{format_path(path)}` has a default, which format version {version} does not support",
                "set `format_version: 3` for the table (this cannot be undone), or remove the default",
            )


def defaults_of_the_type(view: ValidationContext) -> Iterator[Violation]:
    """A default is a value of its field's type.

    Specification, "Default values" and "Appendix D".
    """
    for path, field in view.walked:
        if is_valid_default(field.initial_default, field.type) and is_valid_default(
            field.write_default, field.type
        ):
            continue
        kind = type(field.type).__name__.lower() if is_nested(field.type) else primitive_text(field.type)
        yield Violation(
            "default-of-another-type",
            column_subject(path, "default"),
            f"the default of `{format_path(path)}` is not a value of type {kind}",
            _HINTS.get(kind, f"write a value of type {kind}, or remove the default"),
        )


def defaults_of_rows_in_orc(view: ValidationContext) -> Iterator[Violation]:
    """A table with rows in ORC files gets no new field with a default.

    Iceberg's library fills in a missing field when it reads Parquet and Avro. For ORC it fails ("ORC
    cannot read default value for field …").
    """
    before = view.before
    if before is None or not before.has_rows or before.properties.get(_FILES, "").lower() != "orc":
        return
    old = schema_index(before.schema)
    for path, field in view.walked:
        parent = view.fields[field.id].parent
        if field.initial_default is not None and field.id not in old and (parent is None or parent in old):
            yield Violation(
                "default-not-read-from-orc",
                column_subject(path, "default"),
                f"`{format_path(path)}` is new and has a default, which Iceberg cannot fill in for rows in "
                "ORC files: reading the table will fail",
                "remove the default, or rewrite the files as Parquet first",
                is_warning=True,
            )


_FILES = "write.format.default"
_HINTS = {
    "struct": "the default of a struct is `{}` or null; set defaults on its fields instead",
    "list": "the default of a list is `[]` or null",
    "map": "the default of a map is `{}` or null",
    **dict.fromkeys(
        ("unknown", "variant", "geometry", "geography"), "this type cannot have a default; remove it"
    ),
}


def is_valid_default(value: JsonValue, type_: Type) -> bool:
    """Whether a value in the specification's JSON form (Appendix D) may be a default of the type.

    ``None`` always may: it is no default.
    """
    if value is None:
        return True
    if isinstance(type_, Struct):
        return value == {}
    if isinstance(type_, List):
        return value == []
    if isinstance(type_, Map):
        return value in ({}, {"keys": [], "values": []})
    if isinstance(type_, Decimal):
        return isinstance(value, str) and _is_decimal(value, type_)
    if isinstance(type_, Fixed):
        return isinstance(value, str) and len(value) == 2 * type_.length and _HEX.match(value) is not None
    return isinstance(type_, Primitive) and _fits_primitive(value, type_.name)


def _fits_primitive(value: JsonValue, name: str) -> bool:
    if name == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if name in _INTEGERS:
        return isinstance(value, int) and -(2 ** _INTEGERS[name]) <= value < 2 ** _INTEGERS[name]
    if name in ("float", "double"):
        return isinstance(value, (int, float))
    if not isinstance(value, str):
        return False
    if name == "string":
        return True
    if name == "binary":
        return _HEX.match(value) is not None
    if name == "uuid":
        return _parses(UUID, value)
    if name == "date":
        return _parses(date.fromisoformat, value)
    return name in _FRACTION and _is_time(value, name)


def _is_decimal(text: str, type_: Decimal) -> bool:
    match = _DECIMAL.match(text)
    if match is None:
        return False
    whole, fraction = match[1].lstrip("0"), match[2] or ""
    return len(fraction) == type_.scale and len(whole) + len(fraction) <= type_.precision


def _is_time(text: str, name: str) -> bool:
    match = _TIME.match(text)
    if match is None or (match["zone"] is not None) != name.startswith("timestamptz"):
        return False
    if len(match["fraction"] or "") > _FRACTION[name]:
        return False
    return _parses(time.fromisoformat if name == "time" else datetime.fromisoformat, match["whole"])


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def identifiers_exist(view: ValidationContext) -> Iterator[Violation]:
    """Every identifier field exists."""
    for field_id in sorted(view.table.schema.identifier_ids - view.fields.keys()):
        name = _former_name(view, field_id)
        yield Violation(
            "identifier-missing",
            ("identifier",),
            f"`identifier` names {name}, which is not a field of the table",
            "remove it from `identifier` in the migration that drops it",
        )


def _former_name(view: ValidationContext, field_id: int) -> str:
    path = view.before.schema.path_of(field_id) if view.before else None
    return f"field {field_id}" if path is None else f"`{format_path(path)}`"


def identifiers_are_required(view: ValidationContext) -> Iterator[Violation]:
    """Identifier fields are required.

    A row without a value has no identity.
    """
    for entry in _identifiers(view):
        if not entry.field.required:
            path = format_path(entry.path)
            yield Violation(
                "identifier-optional",
                ("identifier", path),
                f"identifier field `{path}` is optional",
                f"set `required: true` for `{path}`, or remove it from `identifier`",
            )


def identifiers_are_comparable(view: ValidationContext) -> Iterator[Violation]:
    """Identifier fields are primitive, and not ``float`` or ``double``.

    Values of ``float`` and ``double`` are not exact.
    """
    for entry in _identifiers(view):
        type_, path = entry.field.type, format_path(entry.path)
        if is_nested(type_):
            what = f"a {type(type_).__name__.lower()}"
        elif type_ in (Primitive("float"), Primitive("double"), Primitive("variant")):
            assert isinstance(type_, Primitive)
            what = f"of type {type_.name}"
        else:
            continue
        yield Violation(
            "identifier-type",
            ("identifier", path),
            f"identifier field `{path}` is {what}, which cannot identify a row",
            "remove it from `identifier`",
        )


def identifiers_are_there_in_every_row(view: ValidationContext) -> Iterator[Violation]:
    """Identifier fields are not inside a list, a map or an optional struct."""
    for entry in _identifiers(view):
        path = format_path(entry.path)
        if view.in_container(entry):
            yield Violation(
                "identifier-in-list-or-map",
                ("identifier", path),
                f"identifier field `{path}` is inside a list or a map, so a row can have many values",
                "remove it from `identifier`",
            )
            continue
        for above in view.above(entry):
            if not above.field.required:
                parent = format_path(above.path)
                yield Violation(
                    "identifier-in-optional-struct",
                    ("identifier", path),
                    f"identifier field `{path}` is inside `{parent}`, which is optional",
                    f"set `required: true` for `{parent}`, or remove `{path}` from `identifier`",
                )


def _identifiers(view: ValidationContext) -> Iterator[IndexedField]:
    return (view.fields[i] for i in sorted(view.table.schema.identifier_ids & view.fields.keys()))
