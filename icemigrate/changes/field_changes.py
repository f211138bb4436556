"""The base of the kinds that change one field, and checks that they share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from icemigrate.changes.change import Change, PlanProblem, Subject, TablePair
from icemigrate.frozen import replace
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.schema import IndexedField
from icemigrate.iceberg.schema_edits import edit_by_id, fields_of
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, JsonValue, List, Map, Type, is_nested
from icemigrate.spark_sql.identifiers import path_sql, table_sql


class FieldChange(Change):
    """A change of one existing field.

    :param field_id: the field.
    :param path: its path when the change runs.
    """

    field_id: int
    path: FieldPath

    def lacks(self, table: Table) -> Iterator[str]:
        """The field, if it does not exist."""
        if table.schema.by_id(self.field_id) is None:
            yield f"field `{format_path(self.path)}` (id {self.field_id})"

    def scope(self) -> str:
        return field_scope(self.table, self.path)

    def column_subject(self, *keys: str) -> Subject:
        """The subject of an aspect of the field, under ``columns``."""
        return ("columns", format_path(self.path), *keys)

    def alter(self, catalog: str, action: str, rest: str = "") -> str:
        """``ALTER TABLE <table> <action> <field> <rest>``."""
        text = f"ALTER TABLE {table_sql(catalog, self.table)} {action} {path_sql(self.path)}"
        return f"{text} {rest}" if rest else text

    def edit(self, table: Table, change: Callable[[Field], Field]) -> Table:
        """The table with the changed field."""
        return replace(table, schema=edit_by_id(table.schema, self.field_id, change))

    def map_key_problem(self, before: Table) -> Iterator[PlanProblem]:
        """The problem that the field is part of the key of a map."""
        return map_key_problem(before, self.table, self.field_id, self.subject, self.path)


def lacking_siblings(
    table: Table, parent_id: int | None, path: FieldPath, names: Iterable[str | None]
) -> Iterator[str]:
    """The missing siblings that the position of a field refers to.

    :param parent_id: the field of the struct; ``None`` for the columns.
    :param path: the field.
    :param names: the names of siblings; ``None`` is ignored.
    """
    there = {field.name for field in fields_of(table.schema, parent_id)}
    for name in names:
        if name is not None and name not in there:
            yield f"field `{format_path((*path[:-1], name))}`"


def field_scope(table: TableName, path: FieldPath) -> str:
    """What ``allow`` may name to consent to a change of one field."""
    return f"{table}.{format_path(path)}"


def altered_alike(pair: TablePair) -> Iterator[tuple[IndexedField, IndexedField]]:
    """The altered fields whose kind of nesting stays the same, old entry and new.

    A field that becomes nested, or nested differently, is one refused change of type.
    """
    return ((old, new) for old, new in pair.altered if not is_reshaped(old.field.type, new.field.type))


def is_reshaped(old: Type, new: Type) -> bool:
    """Whether the kind of nesting differs, so that nested fields cannot be compared."""
    return (is_nested(old) or is_nested(new)) and type(old) is not type(new)


def is_reshaped_field(pair: TablePair, field_id: int | None) -> bool:
    """Whether the kind of nesting of an existing field changes; false for ``None``, the table itself."""
    if field_id is None:
        return False
    return is_reshaped(pair.old[field_id].field.type, pair.new[field_id].field.type)


def map_key_problem(
    before: Table, table: TableName, field_id: int | None, subject: Subject, path: FieldPath
) -> Iterator[PlanProblem]:
    """The problem that a field is part of the key of a map.

    Iceberg's ``SchemaUpdate`` changes nothing in keys ("Cannot alter map keys"), not even a description:
    two different keys could become equal.
    """
    line = () if field_id is None else before.schema.line_to(field_id)
    if any(isinstance(above.type, Map) and above.type.key is below for above, below in pairwise(line)):
        yield PlanProblem(
            "map-key",
            table,
            subject,
            f"`{format_path(path)}` is part of the key of a map, which cannot be changed",
            "add a new column with the map that you need",
        )


def is_list_or_map_part(before: Table, field_id: int) -> bool:
    """Whether a field is a list's element or a map's key or value, which have no description in Iceberg."""
    line = before.schema.line_to(field_id)
    return len(line) > 1 and isinstance(line[-2].type, (List, Map))


def default_text(value: JsonValue) -> str:
    """A default as JSON, so that the string ``"1"`` differs from the number ``1``."""
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
