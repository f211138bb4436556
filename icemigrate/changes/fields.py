"""What the kinds that change one field have in common: finding it, editing it, naming it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise

from icemigrate.changes.base import Change, Pair, Problem, Subject
from icemigrate.frozen import replace
from icemigrate.model.names import Path, TableName, format_path
from icemigrate.model.schema import Entry
from icemigrate.model.schema_edits import edit_by_id
from icemigrate.model.table import Table
from icemigrate.model.types import Field, JsonValue, List, Map, Type, is_nested
from icemigrate.sql.names import path_sql, table_sql


class FieldChange(Change):
    """A change of one field that is there.

    :param field_id: the field.
    :param path: how it is called when the change runs.
    """

    field_id: int
    path: Path

    def scope(self) -> str:
        """The field, below its table."""
        return field_scope(self.table, self.path)

    def of_column(self, *keys: str) -> Subject:
        """The subject of an aspect of the field, as it stands under ``columns``."""
        return ("columns", format_path(self.path), *keys)

    def alter(self, catalog: str, action: str, rest: str = "") -> str:
        """``ALTER TABLE <table> <action> <field> <rest>``."""
        text = f"ALTER TABLE {table_sql(catalog, self.table)} {action} {path_sql(self.path)}"
        return f"{text} {rest}" if rest else text

    def edit(self, table: Table, change: Callable[[Field], Field]) -> Table:
        """The table with the field changed."""
        return replace(table, schema=edit_by_id(table.schema, self.field_id, change))

    def map_key_problem(self, before: Table) -> Iterator[Problem]:
        """The problem that the field is, or lies below, the key of a map."""
        return map_key_problem(before, self.table, self.field_id, self.subject, self.path)


def field_scope(table: TableName, path: Path) -> str:
    """What ``allow`` may name to consent to a change of one field."""
    return f"{table}.{format_path(path)}"


def altered_alike(pair: Pair) -> Iterator[tuple[Entry, Entry]]:
    """The altered fields whose kind of nesting is the same on both sides, old entry and new.

    A field that becomes nested, or nested in another way, is one refused change of type.
    """
    return ((old, new) for old, new in pair.altered if not is_reshaped(old.field.type, new.field.type))


def is_reshaped(old: Type, new: Type) -> bool:
    """Whether the kind of nesting differs, so that nothing below can be told apart or kept."""
    return (is_nested(old) or is_nested(new)) and type(old) is not type(new)


def is_reshaped_field(pair: Pair, field_id: int | None) -> bool:
    """Whether a field that is on both sides is nested in another way; never so for the table itself."""
    if field_id is None:
        return False
    return is_reshaped(pair.old[field_id].field.type, pair.new[field_id].field.type)


def map_key_problem(
    before: Table, table: TableName, field_id: int | None, subject: Subject, path: Path
) -> Iterator[Problem]:
    """The problem that a field is, or lies below, the key of a map.

    Iceberg's ``SchemaUpdate`` changes nothing there ("Cannot alter map keys"), not even a description:
    two keys that were different could become equal.
    """
    line = () if field_id is None else before.schema.line_to(field_id)
    if any(isinstance(above.type, Map) and above.type.key is below for above, below in pairwise(line)):
        yield Problem(
            "map-key",
            table,
            subject,
            f"`{format_path(path)}` belongs to the key of a map, and keys cannot change",
            "make a new column with the map that you need",
        )


def has_no_description(before: Table, field_id: int) -> bool:
    """Whether it is a list's element or a map's key or value: the format keeps no text for these."""
    line = before.schema.line_to(field_id)
    return len(line) > 1 and isinstance(line[-2].type, (List, Map))


def default_text(value: JsonValue) -> str:
    """A default as plans show it: as JSON, so that the text ``"1"`` is not the number ``1``."""
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
