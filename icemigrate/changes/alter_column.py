"""Changes that ``ALTER COLUMN`` makes: types, nullability, descriptions and positions of fields.

One statement can alter several fields, and Iceberg commits them at once.  It may name a field only once, and
not together with one of its nested fields (``NOT_SUPPORTED_CHANGE_SAME_COLUMN``).  Spark resolves all fields
before it changes any.  Spark supports lists since 4.0 (SPARK-50883, apache/spark #49559;
``alterColumnSpecList`` in ``SqlBaseParser.g4``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from icemigrate.changes.change import Change, MetadataCommit, SqlStatement, Statement
from icemigrate.changes.field_changes import FieldChange
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.table import Table
from icemigrate.spark_sql.identifiers import path_sql, table_sql
from icemigrate.spark_sql.literals import listed_sql


class AlterColumnChange(FieldChange):
    """A change of one field, by ``ALTER COLUMN`` or by a metadata commit."""

    @abstractmethod
    def action(self) -> str | None:
        """The clause after the field, such as ``TYPE BIGINT``; ``None`` if Spark SQL cannot express it."""

    def commit_text(self) -> str:
        """The summary of the metadata commit."""
        return self.describe()

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        action = self.action()
        if action is None:
            return (MetadataCommit(self.commit_text()),)
        return (SqlStatement(self.alter(catalog, "ALTER COLUMN", action)),)

    @classmethod
    def combinable(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """Alterations of any kind of fields that do not contain each other."""
        altered: set[FieldPath] = set()
        lines: set[FieldPath] = set()
        for change in changes:
            if not isinstance(change, AlterColumnChange) or change.action() is None:
                return
            # Spark compares names case-insensitively.
            path = tuple(name.lower() for name in change.path)
            line = {path[:length] for length in range(1, len(path) + 1)}
            if path in lines or not altered.isdisjoint(line):
                return
            altered.add(path)
            lines |= line
            yield change

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        fields = [f"{path_sql(c.path)} {c.action()}" for c in changes if isinstance(c, AlterColumnChange)]
        head = f"ALTER TABLE {table_sql(catalog, changes[0].table)} ALTER COLUMN"
        return (SqlStatement(head + listed_sql(fields)),)


def single_field_statements(changes: Sequence[Change], before: Table, catalog: str) -> Iterator[Statement]:
    """A statement for each field, for a Spark release that accepts only one."""
    for change in changes:
        yield from change.statements(before, catalog)
        before = change.apply(before)
