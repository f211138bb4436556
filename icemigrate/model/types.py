"""Iceberg's types (specification, "Schemas and Data Types", format versions 1 to 3).

Every nested position is a :class:`Field`: of a struct under its own name, of a list as
``element``, of a map as ``key`` and ``value``.  So a path is a path, whatever it goes through.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from operator import is_
from typing import Protocol, TypeAlias

from icemigrate.frozen import Frozen, replace
from icemigrate.model.names import Path

UNASSIGNED = 0
"""Field id of a field that nobody has numbered yet (a type read from text)."""

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
        """The geometry of a reference system as somebody wrote it; case matters in it, as to Iceberg."""
        return cls(None if crs in ("", DEFAULT_CRS) else crs)


class Geography(Frozen):
    """Geography (v3); ``crs`` and ``algorithm`` are ``None`` for the specification's defaults."""

    crs: str | None = None
    algorithm: str | None = None

    @classmethod
    def of(cls, crs: str | None = None, algorithm: str | None = None) -> Geography:
        """The geography of parts as somebody wrote them; Iceberg reads an algorithm in any case."""
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


class Below(Frozen):
    """What is below a type, at every depth.

    :param ids: of all fields.
    :param lowest: of the ids; 0 where there is none.
    :param leaves: the types without fields.
    :param is_dotted: whether a name has a dot in it.
    """

    ids: frozenset[int]
    lowest: int
    leaves: frozenset[Type]
    is_dotted: bool


class Unread(Protocol):
    """What the fields of a struct are made of when they are asked for; equal ones make equal fields."""

    def fields(self) -> tuple[Field, ...]:
        """The fields."""
        ...

    def below(self) -> Below:
        """What is below the struct, without making the fields."""
        ...


class Struct:
    """A struct, and the root of every schema.

    One that comes from a file may be *unread*: its fields are made when they are asked for.  A plan looks at
    a few fields of a table of thousands; what it leaves alone is compared as it was written, and costs no
    more.  Nothing else tells the two apart.
    """

    __slots__ = ("_below", "_fields", "_unread")

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self._fields: tuple[Field, ...] | None = fields
        self._unread: Unread | None = None
        self._below: Below | None = None

    @classmethod
    def unread(cls, unread: Unread) -> Struct:
        """A struct whose fields are made later."""
        out = cls(())
        out._fields, out._unread = None, unread
        return out

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields right below, in order."""
        if self._fields is None:
            assert self._unread is not None
            self._fields = self._unread.fields()
        return self._fields

    @property
    def below(self) -> Below:
        """What is below at every depth; gathered once."""
        if self._below is None:
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
    """First format version that has this type (its fields not looked at)."""
    if isinstance(type_, Primitive):
        return PRIMITIVES[type_.name]
    return 3 if isinstance(type_, (Geometry, Geography)) else 1


def is_nested(type_: Type) -> bool:
    """Whether the type has fields."""
    return type(type_) in _NESTED


def children(type_: Type) -> tuple[Field, ...]:
    """The fields right below a type, in order; none for a primitive."""
    if isinstance(type_, Struct):
        return type_.fields
    if isinstance(type_, List):
        return (type_.element,)
    if isinstance(type_, Map):
        return (type_.key, type_.value)
    return ()


def below(type_: Type) -> Below:
    """What is below a type, at every depth."""
    return type_.below if isinstance(type_, Struct) else _gather(children(type_))


def _gather(fields: tuple[Field, ...]) -> Below:
    nested = [below(f.type) for f in fields if is_nested(f.type)]
    ids = frozenset().union([f.id for f in fields], *(b.ids for b in nested))
    leaves = frozenset().union([f.type for f in fields if not is_nested(f.type)], *(b.leaves for b in nested))
    is_dotted = any("." in f.name for f in fields) or any(b.is_dotted for b in nested)
    return Below(ids, min(ids, default=0), leaves, is_dotted)


def holds(type_: Type, field_id: int) -> bool:
    """Whether a field is somewhere below a type."""
    if isinstance(type_, Struct):
        return field_id in type_.below.ids
    return any(f.id == field_id or holds(f.type, field_id) for f in children(type_))


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


def walk(type_: Type, prefix: Path = ()) -> Iterator[tuple[Path, Field]]:
    """Every field below a type with its path, parents before children."""
    for field in children(type_):
        path = (*prefix, field.name)
        yield path, field
        if is_nested(field.type):
            yield from walk(field.type, path)


def leaf_ids(field: Field) -> frozenset[int]:
    """The fields that have metrics of their own: the field, or the ones below it that are not nested."""
    if not is_nested(field.type):
        return frozenset({field.id})
    return frozenset(f.id for _, f in walk(field.type) if not is_nested(f.type))


def map_fields(type_: Type, change: Callable[[Field], Field], ids: Collection[int] | None = None) -> Type:
    """The type with ``change`` applied to every field, children before their parent.

    What comes out as it was is the same object, so that comparing it with what it was takes no time.

    :param ids: the fields that it changes; ``None``: any.
    """
    if not is_nested(type_):
        return type_

    def mapped(f: Field) -> Field:
        # Asked of what is below, and not of a whole schema: that would gather the ids of all columns.
        is_left = ids is not None and is_nested(f.type) and below(f.type).ids.isdisjoint(ids)
        inner = f.type if is_left else map_fields(f.type, change, ids)
        return change(f if inner is f.type else replace(f, type=inner))

    before = children(type_)
    fields = tuple(map(mapped, before))
    return type_ if all(map(is_, fields, before)) else with_children(type_, fields)


def with_id(f: Field, id_: int) -> Field:
    """The field under another id; a third of the price of ``replace``, for what is asked of every field."""
    return Field(id_, f.name, f.type, f.required, f.doc, f.initial_default, f.write_default)


def renumber(type_: Type, next_id: Callable[[], int]) -> Type:
    """The type with fresh ids, numbered as Iceberg's ``TypeUtil.assignFreshIds`` does.

    All fields right below a type get their ids first, then what is below each, in order.
    """
    fields = [with_id(f, next_id()) for f in children(type_)]
    below = (replace(f, type=renumber(f.type, next_id)) if is_nested(f.type) else f for f in fields)
    return with_children(type_, tuple(below))


def same_type(a: Type, b: Type) -> bool:
    """Whether two types are of the same shape: names, kinds, nullability; ids and docs not looked at."""
    if not (is_nested(a) and is_nested(b)):
        return a == b
    if type(a) is not type(b) or len(children(a)) != len(children(b)):
        return False
    return all(
        x.name == y.name and x.required == y.required and same_type(x.type, y.type)
        for x, y in zip(children(a), children(b), strict=True)
    )
