"""What ``ALTER COLUMN`` says of fields: their types, nullability, descriptions and places.

One statement takes many fields, and Iceberg commits them at once.  A field stands in it once, and not beside
one that it holds (``NOT_SUPPORTED_CHANGE_SAME_COLUMN``).  All of them are looked up before any is changed.
Spark has it since 4.0 (SPARK-50883, apache/spark #49559; ``alterColumnSpecList`` in ``SqlBaseParser.g4``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from icemigrate.changes.base import Change, MetadataCommit, Sql, Statement
from icemigrate.changes.fields import FieldChange
from icemigrate.model.names import Path
from icemigrate.model.table import Table
from icemigrate.sql.literals import listed_sql
from icemigrate.sql.names import path_sql, table_sql


class Alteration(FieldChange):
    """A change of one field that ``ALTER COLUMN`` can say, or else a metadata commit does."""

    @abstractmethod
    def action(self) -> str | None:
        """What stands behind the field (``TYPE BIGINT``); ``None`` where Spark SQL cannot say it."""

    def commit_text(self) -> str:
        """The change as a metadata commit tells of it."""
        return self.describe()

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        action = self.action()
        if action is None:
            return (MetadataCommit(self.commit_text()),)
        return (Sql(self.alter(catalog, "ALTER COLUMN", action)),)

    @classmethod
    def alike(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """Alterations of fields that have nothing to do with each other, of whatever kinds they are."""
        altered: set[Path] = set()
        lines: set[Path] = set()
        for change in changes:
            if not isinstance(change, Alteration) or change.action() is None:
                return
            # Spark compares names without case.
            path = tuple(name.lower() for name in change.path)
            line = {path[:length] for length in range(1, len(path) + 1)}
            if path in lines or not altered.isdisjoint(line):
                return
            altered.add(path)
            lines |= line
            yield change

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        fields = [f"{path_sql(c.path)} {c.action()}" for c in changes if isinstance(c, Alteration)]
        head = f"ALTER TABLE {table_sql(catalog, changes[0].table)} ALTER COLUMN"
        return (Sql(head + listed_sql(fields)),)


def one_by_one(changes: Sequence[Change], before: Table, catalog: str) -> Iterator[Statement]:
    """A statement for each field, for a Spark that takes no more than one."""
    for change in changes:
        yield from change.statements(before, catalog)
        before = change.apply(before)
