"""A table's schema: a struct with identifier fields, looked into by id and by path."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from functools import cached_property

from icemigrate.frozen import Frozen
from icemigrate.model.lookup import Lookup, lowest_id, shared_ends
from icemigrate.model.names import Path
from icemigrate.model.types import Field, Struct, Type, children, holds, is_nested, leaf_ids, walk

_MANY = 64
"""From this many columns on a field is looked up in an index rather than searched for."""


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
    def by_ids(self) -> Index:
        """Every field by id; see :func:`index`."""
        return self._index if len(self.fields) < _MANY else _recent_index(self.fields)

    @cached_property
    def _index(self) -> Index:
        return Index(self.fields)

    def line_to(self, field_id: int) -> tuple[Field, ...]:
        """The fields from a column down to the one with this id; empty where there is none.

        For those who ask for one field of a state that a table passes through: an index of all of them takes
        longer than all else that is done with it.
        """
        if len(self.fields) < _MANY:
            return _line_to(self.fields, field_id)
        return self.by_ids.line_to(field_id)

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

    __slots__ = ("_fields", "_found", "_whole", "columns")

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self._fields = fields
        self.columns = Lookup(fields)
        self._found: dict[int, Entry] = {}
        self._whole = False

    def line_to(self, field_id: int) -> tuple[Field, ...]:
        """The fields from a column down to the one with this id; empty where there is none."""
        at = self.columns.position(field_id)
        if at is not None:
            return (self._fields[at],)
        column = self.columns.owner(field_id)
        return () if column is None else (column, *_line_to(children(column.type), field_id))

    def __getitem__(self, field_id: int) -> Entry:
        found = self._found.get(field_id)
        if found is None:
            line = () if self._whole else self.line_to(field_id)
            if not line:
                raise KeyError(field_id)
            path = tuple(f.name for f in line)
            found = Entry(line[-1], path, line[-2].id if len(line) > 1 else None)
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

    def items(self) -> ItemsView[int, Entry]:
        return self._all().items()

    def values(self) -> ValuesView[Entry]:
        return self._all().values()

    def new(self) -> Iterator[tuple[int, Entry]]:
        """The fields that have negative ids, since nobody has numbered them yet."""
        return _new(self.columns.unnumbered(), (), None)

    def _all(self) -> dict[int, Entry]:
        if not self._whole:
            self._found = dict(_apart(self._fields, (), (), None))
            self._whole = True
        return self._found


_indexes: dict[int, Index] = {}
"""Of wide schemas that were asked for recently, by the identity of their columns.  A schema that had its own
would occupy the memory for as long as the plan that it is in."""


def _recent_index(fields: tuple[Field, ...]) -> Index:
    known = _indexes.get(id(fields))
    if known is None:
        if len(_indexes) > 32:
            _indexes.clear()
        known = _indexes[id(fields)] = Index(fields)
    return known


def apart(one: Schema, other: Schema) -> Iterator[tuple[int, Entry]]:
    """The fields of a schema by id, in document order, but for those that another one has as well.

    A field that is unchanged is the same object in both, or an equal one at the same position.
    """
    yield from _apart(one.fields, other.fields, (), None)


def _apart(
    fields: tuple[Field, ...], others: tuple[Field, ...], prefix: Path, parent: int | None
) -> Iterator[tuple[int, Entry]]:
    start, end = shared_ends(others, fields)
    there = {f.id: f for f in others[start : len(others) - end]}
    for field in fields[start : len(fields) - end]:
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
    start, end = shared_ends(old, new)
    there = {f.id: f for f in old[start : len(old) - end]}
    for field in new[start : len(new) - end]:
        was = there.get(field.id)
        # Equal fields are equal in all that is below them.
        if was is None or was is field or was == field:
            continue
        paths = (*prefixes[0], was.name), (*prefixes[1], field.name)
        yield Entry(was, paths[0], parent), Entry(field, paths[1], parent)
        yield from _altered(children(was.type), children(field.type), paths, field.id)


def _new(fields: Iterable[Field], prefix: Path, parent: int | None) -> Iterator[tuple[int, Entry]]:
    for field in fields:
        path = (*prefix, field.name)
        if field.id < 0:
            yield field.id, Entry(field, path, parent)
        if lowest_id(field) < 0:
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
