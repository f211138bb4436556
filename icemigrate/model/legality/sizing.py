"""Rules about types."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.model.json_form import primitive_text
from icemigrate.model.legality.breach import Breach, View, column
from icemigrate.model.names import format_path
from icemigrate.model.types import Decimal, Fixed, Primitive, since_version

MAX_PRECISION = 38


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
        if field.type == Primitive("unknown") and field.required:
            yield Breach(
                "unknown-is-required",
                column(path, "required"),
                f"`{format_path(path)}` is of type unknown, which is always null, so it cannot be required",
                "leave `required` out, or give it another type",
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
            right, rule = field.type.length > 0, "a length of at least 1"
        else:
            continue
        if not right:
            yield Breach(
                "size-out-of-range",
                column(path, "type"),
                f"`{format_path(path)}` is of type {primitive_text(field.type)}, which does not exist",
                f"give it {rule}",
            )
