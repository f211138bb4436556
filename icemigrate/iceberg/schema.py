"""A table's schema: a struct with identifier fields, with lookup by id and by path."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView

from icemigrate.frozen import Frozen, cached_property
from icemigrate.iceberg.lookup import FieldLookup, lowest_id, shared_ends
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.types import (
    Field,
    Struct,
    Type,
    children,
    has_descendant,
    is_nested,
    leaf_ids,
    walk_fields,
)

_MANY = 64
"""From this number of columns on, a field is looked up in an index."""


class Schema(Frozen, dict=True):
    """Columns in order, and the ids of the identifier fields (a set; the specification gives no order)."""

    fields: tuple[Field, ...] = ()
    identifier_ids: frozenset[int] = frozenset()
    id: int = 0

    def walk(self) -> Iterator[tuple[FieldPath, Field]]:
        """Every field at every depth with its path, parents first."""
        return walk_fields(self.root)

    @property
    def root(self) -> Struct:
        """The columns as a struct."""
        return Struct(self.fields)

    def find(self, path: FieldPath) -> Field | None:
        """The field at a path, or ``None``; names are compared exactly."""
        type_: Type = self.root
        field: Field | None = None
        if path and len(self.fields) >= _MANY:
            at = self.by_ids.columns.position_of_name(path[0])
            if at is None:
                return None
            field, path = self.fields[at], path[1:]
            type_ = field.type
        for name in path:
            field = next((f for f in children(type_) if f.name == name), None)
            if field is None:
                return None
            type_ = field.type
        return field

    @property
    def by_ids(self) -> SchemaIndex:
        """Every field by id; see :func:`schema_index`."""
        return self._index if len(self.fields) < _MANY else _recent_index(self.fields)

    @cached_property
    def _index(self) -> SchemaIndex:
        return SchemaIndex(self.fields)

    def line_to(self, field_id: int) -> tuple[Field, ...]:
        """The fields from a column down to the one with this id; empty where there is none.

        For one field of an intermediate state: an index of all fields would take longer than everything else
        that is done with that state.
        """
        if len(self.fields) < _MANY:
            return _line_to(self.fields, field_id)
        return self.by_ids.line_to(field_id)

    def parent_of(self, field_id: int) -> int | None:
        """The id of the direct parent of the field with this id; ``None`` for a column."""
        line = self.line_to(field_id)
        return line[-2].id if len(line) > 1 else None

    def path_of(self, field_id: int) -> FieldPath | None:
        """The path of the field with this id, or ``None``."""
        return tuple(f.name for f in self.line_to(field_id)) or None

    def by_id(self, field_id: int) -> Field | None:
        """The field with this id, or ``None``."""
        line = self.line_to(field_id)
        return line[-1] if line else None

    def leaves(self, field_id: int) -> frozenset[int]:
        """The leaves in files of the field with this id, which must exist."""
        field = self.by_id(field_id)
        assert field is not None
        return leaf_ids(field)


def _line_to(fields: tuple[Field, ...], field_id: int) -> tuple[Field, ...]:
    for field in fields:
        if field.id == field_id:
            return (field,)
    for field in fields:
        if is_nested(field.type) and has_descendant(field.type, field_id):
            return (field, *_line_to(children(field.type), field_id))
    return ()


class IndexedField(Frozen):
    """A field in the index of a schema.

    :param parent: id of the direct parent; ``None`` for a column.
    """

    field: Field
    path: FieldPath
    parent: int | None


class SchemaIndex(Mapping[int, IndexedField]):
    """Every field of a schema by id, in document order; nested fields are indexed on access."""

    __slots__ = ("_fields", "_found", "_new", "_whole", "columns")

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self._fields = fields
        self.columns = FieldLookup(fields)
        self._found: dict[int, IndexedField] = {}
        self._whole = False
        self._new: tuple[tuple[int, IndexedField], ...] | None = None

    def line_to(self, field_id: int) -> tuple[Field, ...]:
        """The fields from a column down to the one with this id; empty where there is none."""
        at = self.columns.position(field_id)
        if at is not None:
            return (self._fields[at],)
        column = self.columns.owner(field_id)
        return () if column is None else (column, *_line_to(children(column.type), field_id))

    def __getitem__(self, field_id: int) -> IndexedField:
        found = self._found.get(field_id)
        if found is None:
            line = () if self._whole else self.line_to(field_id)
            if not line:
                raise KeyError(field_id)
            path = tuple(f.name for f in line)
            found = IndexedField(line[-1], path, line[-2].id if len(line) > 1 else None)
            self._found[field_id] = found
        return found

    def __contains__(self, field_id: object) -> bool:
        if field_id in self._found:
            return True
        if self._whole or not isinstance(field_id, int):
            return False
        return self.columns.position(field_id) is not None or self.columns.owner(field_id) is not None

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> ItemsView[int, IndexedField]:
        return self._all().items()

    def values(self) -> ValuesView[IndexedField]:
        return self._all().values()

    def new(self) -> tuple[tuple[int, IndexedField], ...]:
        """The fields with negative ids, which have no final number yet."""
        if self._new is None:
            self._new = tuple(_new(self.columns.unnumbered(), (), None))
        return self._new

    def _all(self) -> dict[int, IndexedField]:
        if not self._whole:
            self._found = dict(_apart(self._fields, (), (), None))
            self._whole = True
        return self._found


_indexes: dict[int, SchemaIndex] = {}
"""Indexes of wide schemas that were used recently, by the identity of their columns.

An index in each schema would occupy memory as long as its plan.
"""


def _recent_index(fields: tuple[Field, ...]) -> SchemaIndex:
    known = _indexes.get(id(fields))
    if known is None:
        if len(_indexes) > 32:
            _indexes.clear()
        known = _indexes[id(fields)] = SchemaIndex(fields)
    return known


def differing_fields(one: Schema, other: Schema) -> Iterator[tuple[int, IndexedField]]:
    """The fields of a schema by id, in document order, without those that another one has as well.

    An unchanged field is the same object in both, or an equal one at the same position.
    """
    yield from _apart(one.fields, other.fields, (), None)


def _apart(
    fields: tuple[Field, ...], others: tuple[Field, ...], prefix: FieldPath, parent: int | None
) -> Iterator[tuple[int, IndexedField]]:
    start, end = shared_ends(others, fields)
    there = {f.id: f for f in others[start : len(others) - end]}
    for field in fields[start : len(fields) - end]:
        twin = there.get(field.id)
        if twin is field:
            continue
        path = (*prefix, field.name)
        yield field.id, IndexedField(field, path, parent)
        if is_nested(field.type) and (twin is None or twin.type is not field.type):
            below_twin = () if twin is None else children(twin.type)
            yield from _apart(children(field.type), below_twin, path, field.id)


def altered_fields(old: Schema, new: Schema) -> Iterator[tuple[IndexedField, IndexedField]]:
    """The fields of both with any difference except their position, nested ones included;
    in the new order.
    """
    yield from _altered(old.fields, new.fields, ((), ()), None)


def _altered(
    old: tuple[Field, ...], new: tuple[Field, ...], prefixes: tuple[FieldPath, FieldPath], parent: int | None
) -> Iterator[tuple[IndexedField, IndexedField]]:
    start, end = shared_ends(old, new)
    there = {f.id: f for f in old[start : len(old) - end]}
    for field in new[start : len(new) - end]:
        was = there.get(field.id)
        # Equal fields have equal nested fields.
        if was is None or was is field or was == field:
            continue
        paths = (*prefixes[0], was.name), (*prefixes[1], field.name)
        yield IndexedField(was, paths[0], parent), IndexedField(field, paths[1], parent)
        yield from _altered(children(was.type), children(field.type), paths, field.id)


def _new(
    fields: Iterable[Field], prefix: FieldPath, parent: int | None
) -> Iterator[tuple[int, IndexedField]]:
    for field in fields:
        path = (*prefix, field.name)
        if field.id < 0:
            yield field.id, IndexedField(field, path, parent)
        if is_nested(field.type) and lowest_id(field) < 0:
            yield from _new(FieldLookup(children(field.type)).unnumbered(), path, field.id)


def schema_index(schema: Schema) -> SchemaIndex:
    """Every field of a schema by id, in document order.

    For many fields; :meth:`Schema.line_to` finds one.  It is cached, because planning a table needs the index
    of the same schema many times.
    """
    return schema.by_ids


def sibling_ids(schema: Schema) -> dict[int | None, list[int]]:
    """The ids of the fields in order, by the id of their parent (``None``: the columns)."""
    out: dict[int | None, list[int]] = {}
    for field_id, entry in schema_index(schema).items():
        out.setdefault(entry.parent, []).append(field_id)
    return out
