"""A schema with one field changed, by field id."""

from __future__ import annotations

from collections.abc import Callable, Collection

from icemigrate.frozen import replace
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.types import (
    Field,
    children,
    is_nested,
    map_fields,
    with_children,
)


def edit_by_id(schema: Schema, field_id: int, change: Callable[[Field], Field]) -> Schema:
    """The schema with one field changed, at any depth; it must exist."""
    return _edit_siblings_of(schema, field_id, lambda f: (change(f),))


def remove_by_id(schema: Schema, field_id: int) -> Schema:
    """The schema without one field of a struct; it must exist."""
    return _edit_siblings_of(schema, field_id, lambda _: ())


def _edit_siblings_of(schema: Schema, field_id: int, change: Callable[[Field], tuple[Field, ...]]) -> Schema:
    """The schema with one field replaced by others; unrelated fields stay the same objects."""
    line = schema.line_to(field_id)
    assert line, f"no field with id {field_id}"
    instead = change(line[-1])
    for above, field in zip(line[-2::-1], line[:0:-1], strict=True):
        fields = _replace_sibling(children(above.type), field, instead)
        instead = (replace(above, type=with_children(above.type, fields)),)
    return replace(schema, fields=_replace_sibling(schema.fields, line[0], instead))


def change_fields(
    schema: Schema, change: Callable[[Field], Field], ids: Collection[int]
) -> tuple[Field, ...]:
    """The columns with some fields changed at any depth; other columns are not visited.

    :param ids: the fields that ``change`` changes.
    """
    ids = frozenset(ids)  # compared with the ids of each type, which takes the shorter time of two sets
    columns = schema_index(schema).columns
    owners = {i: columns.owner(i) for i in ids if columns.position(i) is None}
    at = {columns.position(i if (o := owners.get(i)) is None else o.id) for i in ids} - {None}
    fields = list(schema.fields)
    for one in at:
        assert one is not None
        field = fields[one]
        inner = map_fields(field.type, change, ids) if is_nested(field.type) else field.type
        fields[one] = change(field if inner is field.type else replace(field, type=inner))
    return tuple(fields)


def _replace_sibling(
    fields: tuple[Field, ...], field: Field, instead: tuple[Field, ...]
) -> tuple[Field, ...]:
    """The fields with one of them replaced by others."""
    at = next(i for i, f in enumerate(fields) if f is field)
    return (*fields[:at], *instead, *fields[at + 1 :])


def fields_of(schema: Schema, parent_id: int | None) -> tuple[Field, ...]:
    """The direct children of a field, or the columns."""
    if parent_id is None:
        return schema.fields
    parent = schema.by_id(parent_id)
    return children(parent.type) if parent else ()


def edit_fields_of(
    schema: Schema, parent_id: int | None, change: Callable[[tuple[Field, ...]], tuple[Field, ...]]
) -> Schema:
    """The schema with the direct children of a field (``None``: the columns) changed."""
    if parent_id is None:
        return replace(schema, fields=change(schema.fields))
    return edit_by_id(
        schema, parent_id, lambda f: replace(f, type=with_children(f.type, change(children(f.type))))
    )


def insert_field(
    schema: Schema, parent_id: int | None, field: Field, after: str | None, first: bool
) -> Schema:
    """The schema with a field inserted into a struct: first, after the sibling ``after``, or last."""

    def put(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        at = len(fields)
        if first:
            at = 0
        elif after is not None:
            at = 1 + next(i for i, f in enumerate(fields) if f.name == after)
        return (*fields[:at], field, *fields[at:])

    return edit_fields_of(schema, parent_id, put)


def move_field(fields: tuple[Field, ...], name: str, after: str | None) -> tuple[Field, ...]:
    """Siblings with the named one moved first (``after=None``) or after another one."""
    moved = next(f for f in fields if f.name == name)
    rest = tuple(f for f in fields if f.name != name)
    at = 0 if after is None else 1 + next(i for i, f in enumerate(rest) if f.name == after)
    return (*rest[:at], moved, *rest[at:])
