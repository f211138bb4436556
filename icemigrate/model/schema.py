"""A table's schema: a struct with identifier fields, looked into by id and by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.frozen import Frozen
from icemigrate.model.names import Path
from icemigrate.model.types import Field, Struct, Type, children, is_nested, walk


class Schema(Frozen):
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

    def line_to(self, field_id: int) -> tuple[Field, ...]:
        """The fields from a column down to the one with this id; empty where there is none.

        For those who ask for one field of a state that a table passes through: an index of all of them takes
        longer than all else that is done with it.
        """
        return _line_to(self.fields, field_id)

    def parent_of(self, field_id: int) -> int | None:
        """The id of the field right above the one with this id; ``None`` for a column."""
        line = self.line_to(field_id)
        return line[-2].id if len(line) > 1 else None

    def path_of(self, field_id: int) -> Path | None:
        """The path of the field with this id, or ``None``."""
        return tuple(f.name for f in self.line_to(field_id)) or None

    def by_id(self, field_id: int) -> Field | None:
        """The field with this id, or ``None``."""
        line = self.line_to(field_id)
        return line[-1] if line else None


def _line_to(fields: tuple[Field, ...], field_id: int) -> tuple[Field, ...]:
    for field in fields:
        if field.id == field_id:
            return (field,)
    for field in fields:
        if is_nested(field.type):
            below = _line_to(children(field.type), field_id)
            if below:
                return (field, *below)
    return ()


class Entry(Frozen):
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

    One pass, for those who ask for many fields; :meth:`Schema.line_to` looks for one.  The last indexes are
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


def siblings(schema: Schema) -> dict[int | None, list[int]]:
    """The ids of the fields in order, by the id of what they stand in (``None``: the columns)."""
    out: dict[int | None, list[int]] = {}
    for field_id, entry in index(schema).items():
        out.setdefault(entry.parent, []).append(field_id)
    return out


def _index(schema: Schema) -> dict[int, Entry]:
    out: dict[int, Entry] = {}
    for column in schema.fields:
        if is_nested(column.type):
            out.update(_index_of(column))
        else:
            out[column.id] = Entry(column, (column.name,), None)
    return out


_COLUMNS: dict[int, tuple[Field, Mapping[int, Entry]]] = {}
_COLUMNS_KEPT = 4096


def _index_of(column: Field) -> Mapping[int, Entry]:
    """A nested column and all below it.

    Kept too: from one change of a table to the next, nearly all columns stay the same objects.
    """
    known = _COLUMNS.get(id(column))
    if known is not None and known[0] is column:
        return known[1]
    if len(_COLUMNS) >= _COLUMNS_KEPT:
        _COLUMNS.clear()
    out: dict[int, Entry] = {}

    def visit(field: Field, prefix: Path, parent: int | None) -> None:
        path = (*prefix, field.name)
        out[field.id] = Entry(field, path, parent)
        if is_nested(field.type):
            for below in children(field.type):
                visit(below, path, field.id)

    visit(column, (), None)
    _COLUMNS[id(column)] = (column, out)
    return out
