"""Small tables for tests, written as text."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName, parse_path
from icemigrate.iceberg.partitioning import (
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    Transform,
    default_name,
)
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import Field, Struct, map_fields, renumber_fields

NAME = TableName.parse("db.t")


def table(
    columns: str,
    *,
    partition: str = "",
    sort: str = "",
    identifier: str = "",
    properties: Mapping[str, str] | None = None,
    format_version: int = 2,
    name: TableName = NAME,
) -> Table:
    """A table made fresh: ids as Iceberg gives them on ``CREATE TABLE``.

    :param columns: the inside of a struct, e.g. ``id: required long, name: string``.
    :param partition: terms like ``day(ts)``, comma-separated; bucket and truncate as ``bucket[16](id)``.
    :param sort: names of columns, ascending, comma-separated.
    """
    numbers = count(1)
    root = renumber_fields(parse_type(f"struct<{columns}>"), lambda: next(numbers))
    assert isinstance(root, Struct)
    schema = Schema(root.fields)
    highest = next(numbers) - 1
    schema = replace(schema, identifier_ids=frozenset(ids(schema, identifier)))
    spec = spec_of(schema, partition)
    return Table(
        name=name,
        schema=schema,
        spec=spec,
        sort_order=SortOrder(tuple(SortField((i,)) for i in ids(schema, sort)), 1 if sort else 0),
        properties=dict(properties or {}),
        format_version=format_version,
        last_column_id=highest,
        last_partition_id=999 + len(spec.fields),
        uuid="00000000-0000-4000-8000-000000000001",
    )


def ids(schema: Schema, paths: str) -> list[int]:
    """The field ids of comma-separated paths."""
    return [field_at(schema, path.strip()).id for path in paths.split(",") if path.strip()]


def field_at(schema: Schema, path: str) -> Field:
    """The field at a path, which must exist."""
    found = schema.find(parse_path(path))
    assert found is not None, f"no field {path}"
    return found


def spec_of(schema: Schema, terms: str, first_id: int = 1000) -> PartitionSpec:
    """A spec of comma-separated terms, each under the name that ADD PARTITION FIELD gives it."""
    fields = []
    for number, term in enumerate(t.strip() for t in terms.split(",") if t.strip()):
        transform, _, source = term.rpartition("(")
        path = source.rstrip(")")
        kind = Transform.parse(transform or "identity")
        fields.append(
            PartitionField(
                (field_at(schema, path).id,), kind, default_name(parse_path(path), kind), first_id + number
            )
        )
    return PartitionSpec(tuple(fields))


def with_columns(
    base: Table, columns: str, renamed: Mapping[str, str] | None = None, *, by_hand: bool = False
) -> Table:
    """``base`` with other columns: same names keep their ids, ``renamed`` (new: old) too.

    Others get -1, -2, … as in a declaration; or, ``by_hand``, ids as the catalog gives them.
    """
    old = {path: f.id for path, f in base.schema.walk()}
    numbers = count(base.last_column_id + 1) if by_hand else count(-1, -1)
    schema = table(columns).schema
    origin = {parse_path(k): parse_path(v) for k, v in (renamed or {}).items()}
    by_id = {f.id: path for path, f in schema.walk()}

    def before(path: tuple[str, ...]) -> tuple[str, ...]:
        for depth in range(len(path), 0, -1):
            if path[:depth] in origin:
                return (*origin[path[:depth]], *path[depth:])
        return path

    def number(f: Field) -> Field:
        known = old.get(before(by_id[f.id]))
        return replace(f, id=known if known is not None else next(numbers))

    root = map_fields(schema.root, number)
    assert isinstance(root, Struct)
    return replace(base, schema=replace(base.schema, fields=root.fields))
