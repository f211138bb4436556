"""Changes of the identifier fields: before and after changes of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    Reversal,
    Statement,
    Subject,
    TablePair,
    TablePart,
    WriterImpact,
)
from icemigrate.changes.partition_terms import lacking_sources, source_id
from icemigrate.changes.statement_shapes import alter_table, always_reversible
from icemigrate.frozen import replace
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.schema import IndexedField
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table
from icemigrate.spark_sql.identifiers import path_sql


class IdentifierChange(Change):
    """A change of the identifier fields.

    :param fields: the paths of all identifier fields after the change.
    """

    fields: tuple[FieldPath, ...]

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("identifier",)

    def lacks(self, table: Table) -> Iterator[str]:
        return lacking_sources(table, self.fields)

    def apply(self, table: Table) -> Table:
        """The table with the identifier."""
        ids = frozenset(source_id(table, path) for path in self.fields)
        return replace(table, schema=replace(table.schema, identifier_ids=ids))

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("undoing restores the earlier identifier")

    def leaving(self, before: Table) -> tuple[FieldPath, ...]:
        """The paths of the fields that are removed from the identifier."""
        ids = before.schema.identifier_ids
        return tuple(path for path, f in before.schema.walk() if f.id in ids and path not in self.fields)

    def describe(self) -> str:
        if not self.fields:
            return "remove the identifier"
        return f"identify rows by {', '.join(format_path(p) for p in self.fields)}"


class FreeIdentifier(IdentifierChange):
    """Remove fields from the identifier before they are dropped, made optional, or renamed in a struct.

    Iceberg refuses each of these ("Cannot delete identifier field").  A renamed field of a struct, or of a
    renamed struct, is removed and added again under its new path.
    """

    kind: ClassVar[str] = "free_identifier"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields", "identifier"})
    phase: ClassVar[ChangePhase] = ChangePhase.FREE_IDENTIFIER

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """One change, if any identifier field has to be removed."""
        if pair.before is None or pair.after is None:
            return
        ids = pair.before.schema.identifier_ids
        staying = {i for i in ids if i in pair.old and not _in_the_way(pair, i, pair.old[i])}
        if len(staying) < len(ids):
            yield cls(pair.before.name, tuple(e.path for i, e in pair.old.items() if i in staying))

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``DROP IDENTIFIER FIELDS``."""
        fields = ", ".join(path_sql(path) for path in self.leaving(before))
        return (alter_table(catalog, self.table, f"DROP IDENTIFIER FIELDS {fields}"),)


def _in_the_way(pair: TablePair, field_id: int, old: IndexedField) -> bool:
    new = pair.new.get(field_id)
    if new is None or (len(old.path) > 1 and old.path != new.path):
        return True
    return any(not entry.field.required for entry in _with_parents(pair, new))


def _with_parents(pair: TablePair, entry: IndexedField) -> Iterator[IndexedField]:
    yield entry
    while entry.parent is not None:
        entry = pair.new[entry.parent]
        yield entry


class SetIdentifier(IdentifierChange):
    """Set the identifier, after all its columns exist and are required."""

    kind: ClassVar[str] = "set_identifier"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"identifier"})
    phase: ClassVar[ChangePhase] = ChangePhase.IDENTIFIER

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """One change, if the fields differ."""
        if pair.both is None:
            return
        before, after = (table.schema.identifier_ids for table in pair.both)
        if before != after:
            paths = tuple(entry.path for i, entry in pair.new.items() if i in after)
            yield cls(pair.both[0].name, paths)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        return (
            WriterImpact(WriterKind.STREAMS, "keeps finding rows by the identifier that it started with"),
        )

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``SET IDENTIFIER FIELDS``, or ``DROP IDENTIFIER FIELDS`` for an empty identifier."""
        if self.fields:
            action = f"SET IDENTIFIER FIELDS {', '.join(path_sql(p) for p in self.fields)}"
        else:
            action = f"DROP IDENTIFIER FIELDS {', '.join(path_sql(p) for p in self.leaving(before))}"
        return (alter_table(catalog, self.table, action),)
