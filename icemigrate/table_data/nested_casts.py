"""Structs, lists and maps of some data in a column of a table: whether their parts are the same, and fit.

DuckDB casts nested values without a question: it drops fields, makes entries of a map from the fields of a
struct, rounds numbers, and removes the zone of a time.  Each of these is an error here, as it is for a plain
column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.types import List, Map, Primitive, Struct, Type, is_nested
from icemigrate.table_data.duckdb_session import quoted_identifier
from icemigrate.table_data.duckdb_types import duckdb_type

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

_UNZONED = (Primitive("timestamp"), Primitive("timestamp_ns"))
_NULL = "null"
_WORDS = {"struct": "a struct", "list": "a list", "array": "a list", "map": "a map"}
LeafMisfit = Callable[[Type, str, str], "str | None"]
"""A condition that is true where a plain value does not fit a type: from the type, the type of the value in
DuckDB, and the value in SQL; ``None`` where every value fits."""


def type_problem(type_: Type, given: str, path: str) -> str | None:
    """Why no value of a type is one of a column, whatever it is.

    :param given: a type of DuckDB.
    :param path: of the column.
    :returns: such as ``column `a.b` has a time zone, and that of the table has none``; ``None`` where values
        may fit.
    """
    import duckdb

    return next(_problems(type_, duckdb.sqltype(given), path), None)


def _problems(type_: Type, given: DuckDBPyType, path: str) -> Iterator[str]:
    if given.id == _NULL:
        return
    has, wants = _kind_name(given), _wanted_kind_name(type_)
    if has != wants:
        yield f"column `{path}` has {has or f'the type {given}'}, and the table has {wants or _text(type_)}"
        return
    if has is None:
        if given.id == "timestamp with time zone" and type_ in _UNZONED:
            yield f"column `{path}` has a time zone, and that of the table has none"
        if given.id == "blob" and type_ == Primitive("string"):
            yield f"column `{path}` is binary, and that of the table is a text"
        return
    inner = _parts(given)
    if isinstance(type_, Struct):
        fields = {field.name: field.type for field in type_.fields}
        for name, child in inner.items():
            if name not in fields:
                yield f"column `{path}` has a field `{name}`, and that of the table has none"
            else:
                yield from _problems(fields[name], child, f"{path}.{name}")
    elif isinstance(type_, List):
        yield from _problems(type_.element.type, inner["child"], f"{path}.element")
    elif isinstance(type_, Map):
        yield from _problems(type_.key.type, inner["key"], f"{path}.key")
        yield from _problems(type_.value.type, inner["value"], f"{path}.value")


def nested_misfits(type_: Type, given: str, value: str, leaf: LeafMisfit) -> Iterator[str]:
    """Conditions in SQL, never null, of which one is true where a part of a value does not fit.

    :param given: the type of the value in DuckDB, for which :func:`type_problem` finds none.
    :param value: in SQL.
    """
    import duckdb

    yield from _misfits(type_, duckdb.sqltype(given), value, leaf, 0)


def _misfits(type_: Type, given: DuckDBPyType, value: str, leaf: LeafMisfit, depth: int) -> Iterator[str]:
    if given.id == _NULL or _kind_name(given) != _wanted_kind_name(type_):
        return
    if not is_nested(type_) and str(given) == duckdb_type(type_):
        return
    if not is_nested(type_):
        condition = leaf(type_, str(given), value)
        if condition is not None:
            yield f"coalesce({condition}, false)"
        return
    inner = _parts(given)
    if isinstance(type_, Struct):
        for field in type_.fields:
            if field.name in inner:
                part = f"{value}.{quoted_identifier(field.name)}"
                yield from _misfits(field.type, inner[field.name], part, leaf, depth)
        return
    item = f"part{depth}"
    if isinstance(type_, List):
        lists = [(value, type_.element.type, inner["child"])]
    else:
        assert isinstance(type_, Map), "a type with parts is a struct, a list or a map"
        lists = [
            (f"map_keys({value})", type_.key.type, inner["key"]),
            (f"map_values({value})", type_.value.type, inner["value"]),
        ]
    for listed, part_type, part_given in lists:
        for condition in _misfits(part_type, part_given, item, leaf, depth + 1):
            yield f"coalesce(len(list_filter({listed}, lambda {item}: {condition})) > 0, false)"


def _parts(given: DuckDBPyType) -> dict[str, DuckDBPyType]:
    """The types inside a nested type; the length of an array is left out."""
    from duckdb.sqltypes import DuckDBPyType

    return {name: child for name, child in given.children if isinstance(child, DuckDBPyType)}


def _kind_name(given: DuckDBPyType) -> str | None:
    return _WORDS.get(given.id)


def _wanted_kind_name(type_: Type) -> str | None:
    if not is_nested(type_):
        return None
    return "a struct" if isinstance(type_, Struct) else "a list" if isinstance(type_, List) else "a map"


def _text(type_: Type) -> str:
    return f"the type {primitive_text(type_)}"
