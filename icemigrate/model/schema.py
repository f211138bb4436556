"""A table's schema: a struct with identifier fields, looked into by id and by path."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from functools import cached_property

from icemigrate.frozen import Frozen
from icemigrate.model.names import Path
from icemigrate.model.types import Field, Struct, Type, below, children, holds, is_nested, leaf_ids, walk


class Schema(Frozen, dict=True):
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

    @cached_property
    def by_ids(self) -> Index:
        """Every field by id; see :func:`index`."""
        return Index(self.fields)

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

    def leaves(self, field_id: int) -> frozenset[int]:
        """What stands in files of the field with this id, which must be there."""
        field = self.by_id(field_id)
        assert field is not None
        return leaf_ids(field)


def _line_to(fields: tuple[Field, ...], field_id: int) -> tuple[Field, ...]:
    for field in fields:
        if field.id == field_id:
            return (field,)
    for field in fields:
        if is_nested(field.type) and holds(field.type, field_id):
            return (field, *_line_to(children(field.type), field_id))
    return ()


class Entry(Frozen):
    """A field as an index of a schema knows it.

    :param parent: id of the field right above; ``None`` for a column.
    """

    field: Field
    path: Path
    parent: int | None


class Index(Mapping[int, Entry]):
    """Every field of a schema by id, in document order; what is in a struct is looked for when asked for."""

    __slots__ = ("_columns", "_fields", "_found", "_ids", "_nested", "_whole")

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self._fields = fields
        self._columns = {column.id: column for column in fields}
        self._nested = tuple(column for column in fields if is_nested(column.type))
        self._ids: tuple[frozenset[int], ...] | None = None
        self._found: dict[int, Entry] = {}
        self._whole = False

    def __getitem__(self, field_id: int) -> Entry:
        found = self._found.get(field_id)
        if found is None:
            column = self._columns.get(field_id)
            line = _line_to(self._nested, field_id) if column is None and not self._whole else ()
            if column is not None:
                found = Entry(column, (column.name,), None)
            elif line:
                found = Entry(line[-1], tuple(f.name for f in line), line[-2].id)
            else:
                raise KeyError(field_id)
            self._found[field_id] = found
        return found

    def __contains__(self, field_id: object) -> bool:
        if field_id in self._found or field_id in self._columns:
            return True
        if self._whole or not isinstance(field_id, int):
            return False
        if self._ids is None:
            self._ids = tuple(below(column.type).ids for column in self._nested)
        return any(field_id in ids for ids in self._ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> ItemsView[int, Entry]:
        return self._all().items()

    def values(self) -> ValuesView[Entry]:
        return self._all().values()

    def new(self) -> Iterator[tuple[int, Entry]]:
        """The fields that have negative ids, since nobody has numbered them yet."""
        return _new(self._fields, (), None)

    def _all(self) -> dict[int, Entry]:
        if not self._whole:
            self._found = dict(_apart(self._fields, (), (), None))
            self._whole = True
        return self._found


def apart(one: Schema, other: Schema) -> Iterator[tuple[int, Entry]]:
    """The fields of a schema by id, in document order, but for those that another one has as well.

    What nobody changed is the very same object in both, with all that is below it: that is looked at, and not
    whether fields are equal.
    """
    yield from _apart(one.fields, other.fields, (), None)


def _apart(
    fields: tuple[Field, ...], others: tuple[Field, ...], prefix: Path, parent: int | None
) -> Iterator[tuple[int, Entry]]:
    there = {f.id: f for f in others}
    for field in fields:
        twin = there.get(field.id)
        if twin is field:
            continue
        path = (*prefix, field.name)
        yield field.id, Entry(field, path, parent)
        if is_nested(field.type) and (twin is None or twin.type is not field.type):
            below_twin = () if twin is None else children(twin.type)
            yield from _apart(children(field.type), below_twin, path, field.id)


def altered(old: Schema, new: Schema) -> Iterator[tuple[Entry, Entry]]:
    """The fields of both about which anything differs (but their place), what is below included; in the new
    order."""
    yield from _altered(old.fields, new.fields, ((), ()), None)


def _altered(
    old: tuple[Field, ...], new: tuple[Field, ...], prefixes: tuple[Path, Path], parent: int | None
) -> Iterator[tuple[Entry, Entry]]:
    there = {f.id: f for f in old}
    for field in new:
        was = there.get(field.id)
        # Equal fields are equal in all that is below them.
        if was is None or was is field or was == field:
            continue
        paths = (*prefixes[0], was.name), (*prefixes[1], field.name)
        yield Entry(was, paths[0], parent), Entry(field, paths[1], parent)
        yield from _altered(children(was.type), children(field.type), paths, field.id)


def _new(fields: tuple[Field, ...], prefix: Path, parent: int | None) -> Iterator[tuple[int, Entry]]:
    for field in fields:
        path = (*prefix, field.name)
        if field.id < 0:
            yield field.id, Entry(field, path, parent)
        if is_nested(field.type) and below(field.type).lowest < 0:
            yield from _new(children(field.type), path, field.id)


def index(schema: Schema) -> Index:
    """Every field of a schema by id, in document order.

    For those who ask for many fields; :meth:`Schema.line_to` looks for one.  It is made once, since while a
    table is planned many ask for that of the same schema.
    """
    return schema.by_ids


def siblings(schema: Schema) -> dict[int | None, list[int]]:
    """The ids of the fields in order, by the id of what they stand in (``None``: the columns)."""
    out: dict[int | None, list[int]] = {}
    for field_id, entry in index(schema).items():
        out.setdefault(entry.parent, []).append(field_id)
    return out
