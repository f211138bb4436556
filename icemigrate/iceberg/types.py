"""Iceberg's types (specification, "Schemas and Data Types", format versions 1 to 3).

Every nested position is a :class:`Field`: of a struct under its own name, of a list as
``element``, of a map as ``key`` and ``value``.  So a path is a path, whatever it goes through.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from operator import is_
from typing import Protocol, TypeAlias

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import FieldPath

UNASSIGNED = 0
"""Field id of a field without a number (a type read from text)."""

JsonValue: TypeAlias = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
"""A default in the specification's JSON single-value form (Appendix D)."""


class Primitive(Frozen):
    """A primitive without parameters, by the specification's name (``long``, ``timestamptz``)."""

    name: str


class Decimal(Frozen):
    """Fixed-point decimal; precision is 1 to 38, scale 0 to precision."""

    precision: int
    scale: int


class Fixed(Frozen):
    """Byte array of a fixed length in bytes."""

    length: int


DEFAULT_CRS = "OGC:CRS84"
EDGE_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")
"""How the edges of a geography run between their ends; the first is the specification's default."""


class Geometry(Frozen):
    """Geometry (v3); ``crs`` is ``None`` for the specification's default :data:`DEFAULT_CRS`."""

    crs: str | None = None

    @classmethod
    def of(cls, crs: str | None = None) -> Geometry:
        """The geometry of a reference system as written; Iceberg compares it with regard to case."""
        return cls(None if crs in ("", DEFAULT_CRS) else crs)


class Geography(Frozen):
    """Geography (v3); ``crs`` and ``algorithm`` are ``None`` for the specification's defaults."""

    crs: str | None = None
    algorithm: str | None = None

    @classmethod
    def of(cls, crs: str | None = None, algorithm: str | None = None) -> Geography:
        """The geography of parts as written; Iceberg reads an algorithm in any case."""
        edges = (algorithm or EDGE_ALGORITHMS[0]).lower()
        return cls(Geometry.of(crs).crs, None if edges == EDGE_ALGORITHMS[0] else edges)


class Field(Frozen):
    """A column, a field of a struct, or the element, key or value of a list or map.

    :param id: field id; positive as the catalog gave it, negative for one that is new in a
        declaration, :data:`UNASSIGNED` for a type read from text.
    :param initial_default: value that rows written before the field existed read (v3).
    :param write_default: value that writers put where a row has none (v3).
    """

    id: int
    name: str
    type: Type
    required: bool = False
    doc: str | None = None
    initial_default: JsonValue = None
    write_default: JsonValue = None


class NestedFieldIds(Frozen):
    """All fields inside a type, at every depth.

    :param ids: of all fields.
    :param lowest: the lowest id; 0 where there is none.
    :param leaves: the types without fields.
    :param is_dotted: whether a name contains a dot.
    """

    ids: frozenset[int]
    lowest: int
    leaves: frozenset[Type]
    is_dotted: bool


class LazyFields(Protocol):
    """The source of a struct's fields, which are created on access; equal sources give equal fields."""

    def fields(self) -> tuple[Field, ...]:
        """The fields."""
        ...

    def below(self) -> NestedFieldIds:
        """The fields inside the struct, without creating them."""
        ...


class Struct:
    """A struct, and the root of every schema.

    One from a file may be *unread*: its fields are created on access.  A plan reads a few fields of a table
    with thousands; unread ones are compared in their stored form.  Both kinds behave alike.
    """

    __slots__ = ("_below", "_fields", "_unread")

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self._fields: tuple[Field, ...] | None = fields
        self._unread: LazyFields | None = None
        self._below: NestedFieldIds | None = None

    @classmethod
    def unread(cls, unread: LazyFields) -> Struct:
        """A struct whose fields are created on access."""
        out = cls(())
        out._fields, out._unread = None, unread
        return out

    @property
    def fields(self) -> tuple[Field, ...]:
        """The direct fields, in order."""
        if self._fields is None:
            assert self._unread is not None
            self._fields = self._unread.fields()
        return self._fields

    @property
    def below(self) -> NestedFieldIds:
        """All fields inside it, at every depth; computed once."""
        if self._below is not None:
            return self._below
        if self._unread is None and len(self.fields) > _MANY:
            # A history of thousands of migrations has as many structs: it would fill the memory.
            return _recently_gathered(self.fields)
        self._below = _gather(self.fields) if self._unread is None else self._unread.below()
        return self._below

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Struct):
            return NotImplemented
        is_read_alike = self._unread is not None and self._unread == other._unread
        return is_read_alike or self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.fields)

    def __repr__(self) -> str:
        return f"Struct(fields={self.fields!r})"

    def __reduce__(self) -> tuple[type[Struct], tuple[tuple[Field, ...]]]:
        return (Struct, (self.fields,))


class List(Frozen):
    """A list; its one field is named ``element``."""

    element: Field


class Map(Frozen):
    """A map; its fields are named ``key`` (always required) and ``value``."""

    key: Field
    value: Field


Type: TypeAlias = Primitive | Decimal | Fixed | Geometry | Geography | Struct | List | Map

_NESTED = frozenset({Struct, List, Map})

PRIMITIVES: dict[str, int] = {
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 1,
    "double": 1,
    "date": 1,
    "time": 1,
    "timestamp": 1,
    "timestamptz": 1,
    "string": 1,
    "uuid": 1,
    "binary": 1,
    "timestamp_ns": 3,
    "timestamptz_ns": 3,
    "unknown": 3,
    "variant": 3,
}
"""Primitives without parameters, and the first format version that has each.

``variant`` is no primitive in the specification's words, but has no fields either.
"""


def since_version(type_: Type) -> int:
    """First format version that has this type, without regard to its fields."""
    if isinstance(type_, Primitive):
        return PRIMITIVES[type_.name]
    return 3 if isinstance(type_, (Geometry, Geography)) else 1


def is_nested(type_: Type) -> bool:
    """Whether the type has fields."""
    return type(type_) in _NESTED


def children(type_: Type) -> tuple[Field, ...]:
    """The direct fields of a type, in order; none for a primitive."""
    if isinstance(type_, Struct):
        return type_.fields
    if isinstance(type_, List):
        return (type_.element,)
    if isinstance(type_, Map):
        return (type_.key, type_.value)
    return ()


def descendants(type_: Type) -> NestedFieldIds:
    """All fields inside a type, at every depth."""
    return type_.below if isinstance(type_, Struct) else _gather(children(type_))


def _gather(fields: tuple[Field, ...]) -> NestedFieldIds:
    # Comprehensions without calls: each migration of a wide struct passes over all of its fields.
    nested = [descendants(f.type) for f in fields if type(f.type) in _NESTED]
    ids = frozenset().union([f.id for f in fields], *(b.ids for b in nested))
    types = [f.type for f in fields if type(f.type) not in _NESTED]
    leaves = frozenset().union(types, *(b.leaves for b in nested))
    is_dotted = any("." in f.name for f in fields) or any(b.is_dotted for b in nested)
    return NestedFieldIds(ids, min(ids, default=0), leaves, is_dotted)


_MANY = 64
"""Structs with more fields do not store the result of :func:`descendants`."""
_REMEMBERED = 16
_gathered: dict[int, tuple[tuple[Field, ...], NestedFieldIds]] = {}
"""The results for wide structs that were used recently, by the identity of their fields."""


def _recently_gathered(fields: tuple[Field, ...]) -> NestedFieldIds:
    known = _gathered.get(id(fields))
    if known is None:
        if len(_gathered) >= _REMEMBERED:
            _gathered.clear()
        known = _gathered[id(fields)] = (fields, _gather(fields))
    return known[1]


def has_descendant(type_: Type, field_id: int) -> bool:
    """Whether a field is inside a type, at any depth."""
    if isinstance(type_, Struct):
        return field_id in type_.below.ids
    return any(f.id == field_id or has_descendant(f.type, field_id) for f in children(type_))


def with_children(type_: Type, fields: tuple[Field, ...]) -> Type:
    """The same kind of type over other fields (as many as :func:`children` gives, but for a struct)."""
    if isinstance(type_, Struct):
        return Struct(fields)
    if isinstance(type_, List):
        (element,) = fields
        return List(element)
    if isinstance(type_, Map):
        key, value = fields
        return Map(key, value)
    assert not fields, "a primitive has no fields"
    return type_


def walk_fields(type_: Type, prefix: FieldPath = ()) -> Iterator[tuple[FieldPath, Field]]:
    """Every field inside a type with its path, parents before children."""
    for field in children(type_):
        path = (*prefix, field.name)
        yield path, field
        if is_nested(field.type):
            yield from walk_fields(field.type, path)


def leaf_ids(field: Field) -> frozenset[int]:
    """The fields with metrics: the field, or the leaves inside it."""
    if not is_nested(field.type):
        return frozenset({field.id})
    return frozenset(f.id for _, f in walk_fields(field.type) if not is_nested(f.type))


def map_fields(type_: Type, change: Callable[[Field], Field], ids: Collection[int] | None = None) -> Type:
    """The type with ``change`` applied to every field, children before their parent.

    An unchanged part stays the same object, so that comparisons are fast.

    :param ids: the fields that it changes; ``None``: any.
    """
    if not is_nested(type_):
        return type_

    def mapped(f: Field) -> Field:
        # Looked up in the nested types, not in the whole schema, which would collect the ids of all columns.
        is_left = ids is not None and is_nested(f.type) and descendants(f.type).ids.isdisjoint(ids)
        inner = f.type if is_left else map_fields(f.type, change, ids)
        return change(f if inner is f.type else replace(f, type=inner))

    before = children(type_)
    if ids is None:
        fields = tuple(map(mapped, before))
    else:
        # A struct may have thousands of fields, and a migration changes a few of them.
        fields = tuple([mapped(f) if f.id in ids or type(f.type) in _NESTED else f for f in before])
    return type_ if all(map(is_, fields, before)) else with_children(type_, fields)


def with_id(f: Field, id_: int) -> Field:
    """The field under another id; three times as fast as ``replace``, because every field needs it."""
    return Field(id_, f.name, f.type, f.required, f.doc, f.initial_default, f.write_default)


def renumber_fields(type_: Type, next_id: Callable[[], int]) -> Type:
    """The type with new ids, numbered as Iceberg's ``TypeUtil.assignFreshIds`` does.

    The direct fields of a type get their ids first, then the nested ones of each, in order.
    """
    fields = [with_id(f, next_id()) for f in children(type_)]
    below = (replace(f, type=renumber_fields(f.type, next_id)) if is_nested(f.type) else f for f in fields)
    return with_children(type_, tuple(below))


def same_type(a: Type, b: Type) -> bool:
    """Whether two types have the same shape: names, kinds, nullability; without ids and docs."""
    if not (is_nested(a) and is_nested(b)):
        return a == b
    if type(a) is not type(b) or len(children(a)) != len(children(b)):
        return False
    return all(
        x.name == y.name and x.required == y.required and same_type(x.type, y.type)
        for x, y in zip(children(a), children(b), strict=True)
    )
