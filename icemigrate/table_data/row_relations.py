"""Relations of DuckDB with the rows of a load, and the SQL that casts values to a table's types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from icemigrate.frozen import Frozen
from icemigrate.iceberg.types import Field, Fixed, JsonValue, List, Map, Primitive, Struct, Type, is_nested
from icemigrate.table_data.duckdb_session import quoted_identifier, text_literal
from icemigrate.table_data.duckdb_types import duckdb_type
from icemigrate.table_data.nested_casts import nested_misfits
from icemigrate.table_data.text_casts import loses_digits, text_misfits, text_value

ROW, PROBLEM, SOURCE = "_icemigrate_row", "_icemigrate_problem", "_icemigrate_source"
"""The columns of a numbered relation: the number of the row, why values cannot be read, and the row as given.

The second one is a JSON object by column, or null.  The third one is a JSON object on one line, or null where
the columns have the values as they were given.
"""
NULL_TYPE = "NULL"
"""The type of a column or an expression that is always null."""
TEXT = "TEXT"
"""The type of a column whose values are texts to parse."""
_FLOATS = (Primitive("float"), Primitive("double"))


class LoadRelation(Frozen):
    """Rows of a load.

    :param sql: a table function, a table or a query in parentheses.
    :param types: the type of each column in DuckDB, or :data:`TEXT`.
    :param file: names the rows in messages; empty for rows of this process.
    :param is_numbered: whether it has :data:`ROW`, :data:`PROBLEM` and :data:`SOURCE`.
    """

    sql: str
    types: Mapping[str, str]
    file: str = ""
    is_numbered: bool = False

    def value(self, column: Field) -> str:
        """The value of a table's column in SQL; its evaluation fails where the given one does not fit."""
        given = self.types.get(column.name)
        if given is None:
            return f"CAST({_literal(column.write_default)} AS {duckdb_type(column.type)})"
        return cast_sql(column.type, given, quoted_identifier(column.name))

    def select(self, columns: tuple[Field, ...]) -> str:
        """A query of the table's columns."""
        values = ", ".join(f"{self.value(c)} AS {quoted_identifier(c.name)}" for c in columns)
        return f"SELECT {values} FROM {self.sql}"

    def misfits(self, column: Field) -> str | None:
        """Whether a row has no value that fits: a condition in SQL that is never null; ``None`` for never."""
        given, name = self.types.get(column.name), quoted_identifier(column.name)
        if given is None:
            return None
        parts = []
        if given == TEXT:
            parts.append(text_misfits(column.type, name))
        elif given != duckdb_type(column.type):
            tried = f"TRY_CAST({name} AS {duckdb_type(column.type)})"
            lossy = _lossy(column.type, given, name)
            parts.append(f"({name} IS NOT NULL AND {tried} IS NULL)")
            if lossy is not None:
                parts.append(f"coalesce({lossy}, false)")
        if given != TEXT and (beyond := _beyond(column.type, given, name)) is not None:
            parts.append(f"coalesce({beyond}, false)")
        if column.required:
            is_empty = f" OR {name} = ''" if given == TEXT and column.type != Primitive("string") else ""
            parts.append(f"({name} IS NULL{is_empty})")
        if given != TEXT:
            # The given struct may lack a field.
            is_same = given == duckdb_type(column.type)
            value = name if is_same else f"TRY_CAST({name} AS {duckdb_type(column.type)})"
            parts.extend(_missing_inside(column.type, value))
        found = [part for part in parts if part != "false"]
        return " OR ".join(found) or None


def cast_sql(type_: Type, given: str, value: str) -> str:
    """A value in SQL as one of a table's type; its evaluation fails where it does not fit.

    :param given: the type of the value in DuckDB, :data:`TEXT` for a text to parse.
    """
    wanted = duckdb_type(type_)
    if given == TEXT or (given == "VARCHAR" and wanted != given and not is_nested(type_)):
        return text_value(type_, value)
    lossy = None if given == wanted else _lossy(type_, given, value)
    cast = value if given == wanted else f"CAST({value} AS {wanted})"
    misfits = " OR ".join(c for c in (lossy, _beyond(type_, given, value)) if c is not None)
    return f"CASE WHEN {misfits} THEN error('a value does not fit') ELSE {cast} END" if misfits else cast


def _beyond(type_: Type, given: str, value: str) -> str | None:
    """Whether a date or a time, also one inside a value, is an infinity of DuckDB or midnight at a day's end.

    Iceberg has none of them: partitions of infinities would be null.  ``None`` for other types.
    """
    if given == NULL_TYPE:
        return None
    wanted = duckdb_type(type_)
    stored = value if given == wanted else f"TRY_CAST({value} AS {wanted})"
    found = list(_anywhere(type_, stored, _beyond_time))
    return " OR ".join(found) or None


def _beyond_time(type_: Type, value: str) -> str | None:
    if isinstance(type_, Primitive) and type_.name == "time":
        return f"{value} = TIME '24:00:00'"
    is_time = isinstance(type_, Primitive) and type_.name.startswith(("date", "timestamp"))
    return f"isinf({value})" if is_time else None


def _anywhere(
    type_: Type, value: str, condition: Callable[[Type, str], str | None], depth: int = 0
) -> Iterator[str]:
    """The conditions on each plain value in a value, with those of a nested one never null."""
    item = f"part{depth}"
    if isinstance(type_, Struct):
        for field in type_.fields:
            yield from _anywhere(field.type, f"{value}.{quoted_identifier(field.name)}", condition, depth)
    elif isinstance(type_, (List, Map)):
        lists = [(value, type_.element.type)] if isinstance(type_, List) else []
        if isinstance(type_, Map):
            lists = [(f"map_keys({value})", type_.key.type), (f"map_values({value})", type_.value.type)]
        for listed, inner in lists:
            for found in _anywhere(inner, item, condition, depth + 1):
                has = f"lambda {item}: coalesce({found}, false)"
                yield f"coalesce(len(list_filter({listed}, {has})) > 0, false)"
    elif (plain := condition(type_, value)) is not None:
        yield plain


def _lossy(type_: Type, given: str, name: str) -> str | None:
    """Whether a cast changes a value: a condition in SQL; ``None`` where it cannot."""
    if given == NULL_TYPE:
        return None
    if is_nested(type_):
        return " OR ".join(nested_misfits(type_, given, name, _part_misfits)) or None
    if given == "VARCHAR":
        return text_misfits(type_, name)
    if type_ in _FLOATS:
        if (type_, given) == (_FLOATS[0], "DOUBLE"):
            return f"{name} <> 0 AND TRY_CAST({name} AS FLOAT) = 0"
        return loses_digits(type_, given, name)
    wanted = duckdb_type(type_)
    if given == "TIME_NS":  # to which DuckDB casts no other time
        return f"CAST(TRY_CAST({name} AS {wanted}) AS VARCHAR) IS DISTINCT FROM CAST({name} AS VARCHAR)"
    return f"TRY_CAST(TRY_CAST({name} AS {wanted}) AS {given}) IS DISTINCT FROM {name}"


def _part_misfits(type_: Type, given: str, value: str) -> str | None:
    """Whether a plain value inside a nested one does not fit; see :func:`_lossy`."""
    if given == "VARCHAR":
        # DuckDB's cast of a whole struct reads no hexadecimal digits.
        is_binary = isinstance(type_, Fixed) or type_ == Primitive("binary")
        return f"{value} IS NOT NULL" if is_binary else f"{text_misfits(type_, value)} OR {value} = ''"
    tried = f"({value} IS NOT NULL AND TRY_CAST({value} AS {duckdb_type(type_)}) IS NULL)"
    lossy = None if type_ == Primitive("string") else _lossy(type_, given, value)
    return tried if lossy is None else f"{tried} OR {lossy}"


def missing_required(column: Field) -> Iterator[str]:
    """Conditions on a stored column: each is true where it, or a field inside it, lacks a required value."""
    name = quoted_identifier(column.name)
    if column.required:
        yield f"{name} IS NULL"
    yield from _missing_inside(column.type, name)


def _missing_inside(type_: Type, value: str, depth: int = 0) -> Iterator[str]:
    """Conditions that are true where a required field inside a value is null."""
    item = f"item{depth}"
    if isinstance(type_, Struct):
        for field in type_.fields:
            inner = f"{value}.{quoted_identifier(field.name)}"
            conditions = [f"{inner} IS NULL"] if field.required else []
            conditions.extend(_missing_inside(field.type, inner, depth))
            for condition in conditions:
                yield f"({value} IS NOT NULL AND coalesce({condition}, false))"
    elif isinstance(type_, (List, Map)):
        field = type_.element if isinstance(type_, List) else type_.value
        listed = value if isinstance(type_, List) else f"map_values({value})"
        conditions = [f"{item} IS NULL"] if field.required else []
        conditions.extend(_missing_inside(field.type, item, depth + 1))
        for condition in conditions:
            yield f"coalesce(len(list_filter({listed}, lambda {item}: {condition})) > 0, false)"


def _literal(value: JsonValue) -> str:
    if value is None:
        return "NULL"
    return text_literal(value if isinstance(value, str) else json.dumps(value))
