"""A schema with every type that has test data: of columns, identifier fields, lists, maps and structs."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.frozen import replace
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import (
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    renumber_fields,
    walk_fields,
)

STRING, LONG = Primitive("string"), Primitive("long")
LEAF_TYPES: dict[str, Type] = {
    **{
        name: Primitive(name)
        for name in (
            *("boolean", "int", "long", "float", "double", "date", "time", "string", "uuid", "binary"),
            *("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"),
        )
    },
    **{f"decimal_{p}_{s}": Decimal(p, s) for p, s in ((1, 0), (9, 2), (18, 6), (38, 0), (38, 10), (38, 38))},
    **{f"fixed_{length}": Fixed(length) for length in (1, 3, 8, 12, 16)},
}
_MEANT_TEXT = (
    *("email", "first_name", "last_name", "full_name", "city", "status", "customer_id", "phone", "street"),
    *("comment", "url", "ip", "zip_code", "payload"),
)
_MEANT_NUMBERS = ("amount", "age", "latitude", "temperature", "quantity", "ratio", "user_id", "year")


def every_type() -> Schema:
    """The schema."""
    fields = tuple(_fields())
    ids = iter(range(1, 1_000_000))
    root = renumber_fields(Struct(fields), lambda: next(ids))
    assert isinstance(root, Struct)
    unique = frozenset(f.id for path, f in walk_fields(root) if path[-1].startswith("unique_"))
    return Schema(root.fields, unique)


def _fields() -> Iterator[Field]:
    yield Field(0, "id", LONG, required=True)
    yield Field(0, "never", Primitive("unknown"))
    yield Field(0, "birth_date", Primitive("date"))
    for name, type_ in LEAF_TYPES.items():
        yield Field(0, name, type_)
        yield Field(0, f"required_{name}", type_, required=True)
        yield Field(0, f"unique_{name}", type_, required=True)
        yield Field(0, f"list_{name}", List(Field(0, "element", type_)))
        yield Field(0, f"key_{name}", _map(type_, STRING))
        yield Field(0, f"value_{name}", replace(_map(STRING, type_), value=Field(0, "value", type_, True)))
    for name in _MEANT_TEXT:
        yield Field(0, f"of_{name}", STRING)
    for name in _MEANT_NUMBERS:
        for kind, type_ in (("i", Primitive("int")), ("f", Primitive("float")), ("d", Decimal(20, 12))):
            yield Field(0, f"{kind}_{name}", type_)
    point = Struct((Field(0, "latitude", Primitive("double"), True), Field(0, "city", STRING)))
    visits = List(
        Field(0, "element", Struct((Field(0, "at", Primitive("timestamp")), Field(0, "to", point))))
    )
    yield Field(0, "person", Struct((Field(0, "home", point, True), Field(0, "visits", visits))))
    yield Field(0, "by_point", _map(point, List(Field(0, "element", _map(LONG, visits), True))))


def _map(key: Type, value: Type) -> Map:
    return Map(Field(0, "key", key, True), Field(0, "value", value))
