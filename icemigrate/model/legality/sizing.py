"""Rules about types."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.model.json_form import primitive_text
from icemigrate.model.legality.breach import Breach, View, column
from icemigrate.model.names import format_path
from icemigrate.model.types import Decimal, Fixed, List, Map, Primitive, Struct, children, since_version

MAX_PRECISION = 38
MAX_LENGTH = 2**31 - 1
"""Of ``fixed``: readers and writers hold its length in 32 bits (Java's ``Types.FixedType``)."""
_UNKNOWN = Primitive("unknown")


def types_of_the_format(view: View) -> Iterator[Breach]:
    """Every type is one that the table's format version has (specification, "Primitive Types")."""
    version = view.table.format_version
    for path, field in view.walked:
        since = since_version(field.type)
        if since > version:
            yield Breach(
                "type-needs-newer-format",
                column(path, "type"),
                f"`{format_path(path)}` is of type {primitive_text(field.type)}, "
                f"which format version {version} has not",
                f"write `format_version: {since}` for the table (there is no way back), "
                "or choose another type",
            )


def unknown_is_optional(view: View) -> Iterator[Breach]:
    """A field of type ``unknown`` is optional: it is always null (specification, "Primitive Types")."""
    for path, field in view.walked:
        if field.type == _UNKNOWN and field.required:
            yield Breach(
                "unknown-is-required",
                column(path, "required"),
                f"`{format_path(path)}` is of type unknown, which is always null, so it cannot be required",
                "leave `required` out, or give it another type",
            )


def unknown_is_written_beside_others(view: View) -> Iterator[Breach]:
    """Nothing but ``unknown`` in a table, a list, a value of a map or a struct: Parquet has no place for it.

    Iceberg takes such a table, and every write into it fails ("Cannot convert element Parquet: unknown",
    "Cannot write a schema with an empty group").
    """
    if view.table.format_version < since_version(_UNKNOWN):
        return
    columns = view.table.schema.fields
    if columns and all(c.type == _UNKNOWN for c in columns):
        yield Breach(
            "unknown-not-written",
            ("columns",),
            f"table `{view.table.name}` has nothing but columns of type unknown, for which a Parquet file "
            "has no place: Spark can write no row into it",
            "add a column of another type, or give one of them its type",
            is_warning=True,
        )
    for path, field in view.walked:
        parts = children(field.type)
        if isinstance(field.type, Map):
            parts = parts[1:]
        if isinstance(field.type, (List, Map, Struct)) and parts and all(p.type == _UNKNOWN for p in parts):
            yield Breach(
                "unknown-not-written",
                column(path, "type"),
                f"`{format_path(path)}` holds nothing but unknown, for which a Parquet file has no place: "
                "Spark can write no row into the table",
                "give it a type of its own, or add it when the type is known",
                is_warning=True,
            )


def sizes_in_range(view: View) -> Iterator[Breach]:
    """Decimals have 1 to 38 digits, no more of them behind the point than there are; fixed has a length.

    Specification, "Primitive Types".
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
            yield Breach(
                "size-out-of-range",
                column(path, "type"),
                f"`{format_path(path)}` is of type {primitive_text(field.type)}, which does not exist",
                f"give it {rule}",
            )
