"""A table's schema: a struct with identifier fields, looked into by id and by path.

Every function that changes something returns a new schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from icemigrate.model.names import Path
from icemigrate.model.types import (
    Field,
    List,
    Map,
    Struct,
    Type,
    children,
    is_nested,
    walk,
    with_children,
)


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in order, and the ids of the identifier fields (a set; the specification gives no order)."""

    fields: tuple[Field, ...] = ()
    identifier_ids: frozenset[int] = frozenset()
    id: int = 0

    def walk(self) -> Iterator[tuple[Path, Field]]:
        """Every field at every depth with its path, parents first."""
        return walk(self.root)

    @property
    def root(self) -> Struct:
        """The columns as a struct."""
        return Struct(self.fields)

    def find(self, path: Path) -> Field | None:
        """The field at a path, or ``None``; names are compared exactly."""
        type_: Type = self.root
        field: Field | None = None
        for name in path:
            field = next((f for f in children(type_) if f.name == name), None)
            if field is None:
                return None
            type_ = field.type
        return field

    def path_of(self, field_id: int) -> Path | None:
        """The path of the field with this id, or ``None``."""
        return next((path for path, f in self.walk() if f.id == field_id), None)

    def by_id(self, field_id: int) -> Field | None:
        """The field with this id, or ``None``."""
        return next((f for _, f in self.walk() if f.id == field_id), None)


@dataclass(frozen=True, slots=True)
class Entry:
    """A field as an index of a schema knows it.

    :param parent: id of the field right above; ``None`` for a column.
    """

    field: Field
    path: Path
    parent: int | None


_INDEXED: dict[int, tuple[Schema, Mapping[int, Entry]]] = {}
_INDEXES_KEPT = 32


def index(schema: Schema) -> Mapping[int, Entry]:
    """Every field of a schema by id, in document order.

    One pass, for those who ask for many fields; :meth:`Schema.by_id` walks every time.  The last indexes are
    kept, since while a table is planned many ask for that of the same schema.
    """
    known = _INDEXED.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    if len(_INDEXED) >= _INDEXES_KEPT:
        _INDEXED.clear()
    found = _index(schema)
    _INDEXED[id(schema)] = (schema, found)
    return found


def _index(schema: Schema) -> dict[int, Entry]:
    out: dict[int, Entry] = {}

    def visit(type_: Type, prefix: Path, parent: int | None) -> None:
        for field in children(type_):
            path = (*prefix, field.name)
            out[field.id] = Entry(field, path, parent)
            if is_nested(field.type):
                visit(field.type, path, field.id)

    visit(schema.root, (), None)
    return out


def edit_field(schema: Schema, path: Path, change: Callable[[Field], Field]) -> Schema:
    """The schema with the field at ``path`` changed; the path must exist."""
    parent, name = path[:-1], path[-1]

    def in_siblings(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        assert any(f.name == name for f in fields), f"no field {path}"
        return tuple(change(f) if f.name == name else f for f in fields)

    return edit_siblings(schema, parent, in_siblings)


def edit_siblings(
    schema: Schema, parent: Path, change: Callable[[tuple[Field, ...]], tuple[Field, ...]]
) -> Schema:
    """The schema with the fields right below ``parent`` (``()`` for the columns) changed."""

    def below(type_: Type, rest: Path) -> Type:
        fields = children(type_)
        if not rest:
            return with_children(type_, change(fields))
        assert any(f.name == rest[0] for f in fields), f"no field {parent}"
        return with_children(
            type_,
            tuple(replace(f, type=below(f.type, rest[1:])) if f.name == rest[0] else f for f in fields),
        )

    root = below(schema.root, parent)
    assert isinstance(root, Struct)
    return replace(schema, fields=root.fields)


def place_field(fields: tuple[Field, ...], name: str, after: str | None) -> tuple[Field, ...]:
    """Siblings with the named one moved first (``after=None``) or behind another one."""
    moved = next(f for f in fields if f.name == name)
    rest = tuple(f for f in fields if f.name != name)
    at = 0 if after is None else 1 + next(i for i, f in enumerate(rest) if f.name == after)
    return (*rest[:at], moved, *rest[at:])


def container_paths(schema: Schema) -> set[Path]:
    """Paths of all lists and maps; identifier fields may not lie below one."""
    return {path for path, field in schema.walk() if isinstance(field.type, (List, Map))}
