"""Columns and tables that migrations drop, rename or retype."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from icemigrate.frozen import Frozen, field
from icemigrate.hidden_characters import escape_hidden_characters
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.sql_impact.relations import ColumnOrigin, Relation


class ChangeKind(str, Enum):
    """The kind of change of a column or a table."""

    RENAMED = "renamed"
    DROPPED = "dropped"
    RETYPED = "retyped"
    MOVED = "moved"
    """Columns have other positions, from this one on; it matters to `*` in views alone."""


class AffectedObject(Frozen):
    """A column, a nested field, or a table that a migration changes for its users.

    :param table: the table's name after all migrations; for a dropped or renamed table its name before.
    :param path: of the column, before the migrations; empty for the table itself.
    :param to: the new name or type; empty without one.
    :param migration: the name of the migration's file.
    """

    table: TableName
    path: FieldPath
    change: ChangeKind
    to: str
    migration: str

    @property
    def says(self) -> str:
        """The effect of the migration, as a predicate."""
        file = escape_hidden_characters(self.migration)
        if self.change is ChangeKind.DROPPED:
            return f"which {file} drops"
        verb = "renames to" if self.change is ChangeKind.RENAMED else "changes to"
        return f"which {file} {verb} `{self.to}`"

    @property
    def what(self) -> str:
        """The object's kind and name."""
        return f"`{format_path(self.path)}` of `{self.table}`" if self.path else f"table `{self.table}`"


class DeclaredTables(Frozen):
    """The declared tables after all migrations, and the objects that migrations change in them.

    :param columns: the columns of each table.
    :param aliases: names of namespaces in environments, beside the declared ones.
    """

    columns: Mapping[TableName, tuple[str, ...]]
    affected_objects: tuple[AffectedObject, ...]
    aliases: Mapping[tuple[str, ...], tuple[tuple[str, ...], ...]] = field(default_factory=dict)

    @property
    def tables(self) -> Iterable[TableName]:
        """Tables after all migrations, and removed ones."""
        return dict.fromkeys((*self.columns, *(s.table for s in self.affected_objects)))

    def relation(self, table: TableName, *, is_sure: bool) -> Relation:
        """The relation of a table for SQL: its columns, and the removed ones."""
        gone = (
            affected.path[:1]
            for affected in self.affected_objects
            if affected.table == table and affected.path
        )
        paths = [*((name,) for name in self.columns.get(table, ())), *gone]
        columns = {path[0].lower(): frozenset({ColumnOrigin(table, path)}) for path in paths}
        return Relation(columns, is_complete=table in self.columns, is_sure=is_sure)

    def names(self) -> Iterator[tuple[tuple[str, ...], TableName]]:
        """Every name that SQL may call a table by, in lower case, with its namespace."""
        for table in self.tables:
            for namespace in (table.namespace, *self.aliases.get(table.namespace, ())):
                yield tuple(part.lower() for part in (*namespace, table.name)), table
