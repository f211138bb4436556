"""Changes of types that no promotion makes, as ``retype`` with a cast and a check of its values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.files.write.entry_parts import EntryData
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Decimal, Field, Primitive, Type, children, with_children
from icemigrate.spark_sql.identifiers import path_sql
from icemigrate.spark_sql.type_sql import spark_type

_MOST_SHOWN = 5
"""How many values a failed check shows."""
_NUMBERS = frozenset({"int", "long", "float", "double", "decimal"})
_TIMES = frozenset({"date", "timestamp", "timestamptz"})
_WITH_TEXT = frozenset({*_NUMBERS, *_TIMES, "boolean", "binary"})


class RetypedField(Frozen):
    """A field that gets another type, which no promotion makes.

    :param path: with the names after the migration.
    :param field_id: of the declared field, which the migration replaces.
    """

    path: FieldPath
    field_id: int
    before: Type
    after: Type

    @property
    def text(self) -> str:
        """The field and both types, for people."""
        return f"{format_path(self.path)} {format_type(self.before)} → {format_type(self.after)}"

    def consent(self, table: TableName) -> str:
        """The ``allow`` that the migration needs for it."""
        return f"destructive {table}.{format_path(self.path)}"


def is_castable(before: Type, after: Type) -> bool:
    """Whether Spark casts values of one type to the other and back, so that a check can compare them."""
    old, new = _family(before), _family(after)
    if "string" in (old, new):
        return (new if old == "string" else old) in _WITH_TEXT
    if old in _TIMES and new in _TIMES:
        return True
    return {old, new} <= {*_NUMBERS, "boolean"}


def retype_keys(retypes: Iterable[RetypedField]) -> EntryData:
    """The keys ``retype`` and ``checks`` of a table's entry.

    Each check finds values that a cast to the new type and back does not keep.
    """
    found = list(retypes)
    if not found:
        return {}
    return {
        "retype": {
            format_path(one.path): {
                "to": format_type(one.after),
                "using": f"cast({path_sql(one.path)} as {spark_type(one.after)})",
            }
            for one in found
        },
        "checks": [
            {
                "name": f"{format_path(one.path)} keeps its values",
                "after": f"select {path_sql(one.path)} from {{table}} where not "
                f"(try_cast({_as_new(one)} as {spark_type(one.before)}) <=> {path_sql(one.path)}) "
                f"limit {_MOST_SHOWN}",
            }
            for one in found
        ],
    }


def retype_comments(table: TableName, retypes: Iterable[RetypedField]) -> Iterator[str]:
    """The lines of a migration file that ask for a review before the consent."""
    for one in retypes:
        yield f"Review: `retype` replaces a column of {table}: {one.text}."
        if {"timestamp", "timestamptz"} & {_family(one.before), _family(one.after)}:
            yield "Times are cast in the zone UTC, unless `time_zone` names another one."
        yield "The check fails where a cast back gives another value; remove it only if that is intended."


def with_new_types(fields: Iterable[Field], retypes: Iterable[RetypedField]) -> tuple[Field, ...]:
    """Fields with the types that a migration gives to them."""
    types = {one.field_id: one.after for one in retypes}
    return tuple(_with_new_type(field, types) for field in fields)


def _with_new_type(field: Field, types: dict[int, Type]) -> Field:
    if field.id in types:
        return replace(field, type=types[field.id])
    inner = tuple(_with_new_type(child, types) for child in children(field.type))
    return replace(field, type=with_children(field.type, inner))


def _as_new(one: RetypedField) -> str:
    return f"try_cast({path_sql(one.path)} as {spark_type(one.after)})"


def _family(type_: Type) -> str:
    if isinstance(type_, Decimal):
        return "decimal"
    return type_.name if isinstance(type_, Primitive) else ""
