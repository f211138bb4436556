"""A schema with one thing of it changed, by field id: halfway through a swap two siblings have one name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from icemigrate.model.schema import Schema
from icemigrate.model.types import Field, Struct, Type, children, is_nested, with_children


def edit_by_id(schema: Schema, field_id: int, change: Callable[[Field], Field]) -> Schema:
    """The schema with one field changed, wherever it is; it must exist."""
    return _edit_siblings_of(schema, field_id, lambda f: (change(f),))


def remove_by_id(schema: Schema, field_id: int) -> Schema:
    """The schema without one field of a struct; it must exist."""
    return _edit_siblings_of(schema, field_id, lambda _: ())


def _edit_siblings_of(schema: Schema, field_id: int, change: Callable[[Field], tuple[Field, ...]]) -> Schema:
    """The schema with one field replaced by others; what it does not stand in stays the same object."""

    def visit(type_: Type) -> Type | None:
        """The type with the field replaced; ``None`` where it is not below."""
        fields = children(type_)
        for at, f in enumerate(fields):
            if f.id == field_id:
                return with_children(type_, (*fields[:at], *change(f), *fields[at + 1 :]))
            below = visit(f.type) if is_nested(f.type) else None
            if below is not None:
                return with_children(type_, (*fields[:at], replace(f, type=below), *fields[at + 1 :]))
        return None

    root = visit(schema.root)
    assert isinstance(root, Struct), f"no field with id {field_id}"
    return replace(schema, fields=root.fields)


def fields_of(schema: Schema, parent_id: int | None) -> tuple[Field, ...]:
    """The fields right below a field, or the columns."""
    if parent_id is None:
        return schema.fields
    parent = schema.by_id(parent_id)
    return children(parent.type) if parent else ()


def edit_fields_of(
    schema: Schema, parent_id: int | None, change: Callable[[tuple[Field, ...]], tuple[Field, ...]]
) -> Schema:
    """The schema with the fields right below a field (``None``: the columns) changed."""
    if parent_id is None:
        return replace(schema, fields=change(schema.fields))
    return edit_by_id(
        schema, parent_id, lambda f: replace(f, type=with_children(f.type, change(children(f.type))))
    )


def insert_field(
    schema: Schema, parent_id: int | None, field: Field, after: str | None, first: bool
) -> Schema:
    """The schema with a field put into a struct: first, behind the sibling ``after``, or last."""

    def put(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        at = len(fields)
        if first:
            at = 0
        elif after is not None:
            at = 1 + next(i for i, f in enumerate(fields) if f.name == after)
        return (*fields[:at], field, *fields[at:])

    return edit_fields_of(schema, parent_id, put)


def place_field(fields: tuple[Field, ...], name: str, after: str | None) -> tuple[Field, ...]:
    """Siblings with the named one moved first (``after=None``) or behind another one."""
    moved = next(f for f in fields if f.name == name)
    rest = tuple(f for f in fields if f.name != name)
    at = 0 if after is None else 1 + next(i for i, f in enumerate(rest) if f.name == after)
    return (*rest[:at], moved, *rest[at:])
