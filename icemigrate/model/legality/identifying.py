"""Rules about identifier fields (specification, "Identifier Field IDs")."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.model.legality.breach import Breach, View
from icemigrate.model.names import format_path
from icemigrate.model.schema import Entry
from icemigrate.model.types import Primitive, is_nested


def identifiers_exist(view: View) -> Iterator[Breach]:
    """Every identifier field is a field of the schema."""
    for field_id in sorted(view.table.schema.identifier_ids - view.fields.keys()):
        name = _former_name(view, field_id)
        yield Breach(
            "identifier-missing",
            ("identifier",),
            f"the identifier names {name}, which is no field of the table",
            "take it out of `identifier` in the same migration that drops it",
        )


def _former_name(view: View, field_id: int) -> str:
    path = view.before.schema.path_of(field_id) if view.before else None
    return f"field {field_id}" if path is None else f"`{format_path(path)}`"


def identifiers_are_required(view: View) -> Iterator[Breach]:
    """Identifier fields are required: a row without a value has no identity."""
    for entry in _identifiers(view):
        if not entry.field.required:
            path = format_path(entry.path)
            yield Breach(
                "identifier-optional",
                ("identifier", path),
                f"identifier field `{path}` is optional",
                f"write `required: true` for `{path}`, or take it out of `identifier`",
            )


def identifiers_are_comparable(view: View) -> Iterator[Breach]:
    """Identifier fields are primitive and neither ``float`` nor ``double``, whose values are not exact."""
    for entry in _identifiers(view):
        type_, path = entry.field.type, format_path(entry.path)
        if is_nested(type_):
            what = f"a {type(type_).__name__.lower()}"
        elif type_ in (Primitive("float"), Primitive("double"), Primitive("variant")):
            assert isinstance(type_, Primitive)
            what = f"of type {type_.name}"
        else:
            continue
        yield Breach(
            "identifier-type",
            ("identifier", path),
            f"identifier field `{path}` is {what}, which cannot identify a row",
            "take it out of `identifier`",
        )


def identifiers_are_there_in_every_row(view: View) -> Iterator[Breach]:
    """Nothing above an identifier field is a list, a map or optional."""
    for entry in _identifiers(view):
        path = format_path(entry.path)
        if view.in_container(entry):
            yield Breach(
                "identifier-in-list-or-map",
                ("identifier", path),
                f"identifier field `{path}` stands in a list or a map, so a row may have many of it",
                "take it out of `identifier`",
            )
            continue
        for above in view.above(entry):
            if not above.field.required:
                parent = format_path(above.path)
                yield Breach(
                    "identifier-in-optional-struct",
                    ("identifier", path),
                    f"identifier field `{path}` stands in `{parent}`, which is optional",
                    f"write `required: true` for `{parent}`, or take `{path}` out of `identifier`",
                )


def _identifiers(view: View) -> Iterator[Entry]:
    return (view.fields[i] for i in sorted(view.table.schema.identifier_ids & view.fields.keys()))
