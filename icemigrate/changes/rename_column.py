"""Rename of a column or of a field of a struct, which keeps its id and its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    PlanProblem,
    Reversal,
    Reversibility,
    SqlStatement,
    Statement,
    Subject,
    TablePair,
    TablePart,
    WriterImpact,
)
from icemigrate.changes.field_changes import FieldChange
from icemigrate.changes.statement_shapes import leading_of_kind
from icemigrate.frozen import replace
from icemigrate.iceberg.names import FieldPath, format_path, passing_name
from icemigrate.iceberg.schema import IndexedField, Schema, schema_index
from icemigrate.iceberg.schema_edits import fields_of
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import column_properties_after_rename
from icemigrate.spark_sql.identifiers import path_sql, quote, table_sql


class RenameColumn(FieldChange):
    """Rename a field.

    Renames run from the deepest field up, so that every path has the old names of the structs above it.

    :param to: the new leaf name.
    """

    kind: ClassVar[str] = "rename_column"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields"})
    phase: ClassVar[ChangePhase] = ChangePhase.RENAME
    symbol: ClassVar[str] = "→"

    to: str

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[RenameColumn]:
        if pair.before is None:
            return
        renamed = [both for both in pair.altered if both[0].field.name != both[1].field.name]
        for old, new in sorted(renamed, key=lambda both: -len(both[0].path)):
            yield cls(pair.before.name, old.field.id, old.path, new.field.name)

    @property
    def subject(self) -> Subject:
        return ("renames", format_path(self.path))

    def apply(self, table: Table) -> Table:
        """The renamed table; during a swap two siblings have the same name, so the field is found by its id.

        The column properties of a sibling whose name is taken are kept under a temporary name until its own
        rename runs, as the statements do.
        """
        schema = table.schema
        siblings = fields_of(schema, schema.parent_of(self.field_id))
        parent, name = self.path[:-1], next(f.name for f in siblings if f.id == self.field_id)
        others = [f for f in siblings if f.name in (name, self.to) and f.id != self.field_id]
        source = passing_name(self.field_id) if any(f.name == name for f in others) else name
        moves: dict[FieldPath, FieldPath] = {(*parent, source): (*parent, self.to)}
        for other in others:
            if other.name == self.to:
                taken: FieldPath = (*parent, other.name)
                moves[taken] = (*parent, passing_name(other.id))
        renamed = self.edit(table, lambda f: replace(f, name=self.to))
        return replace(renamed, properties=column_properties_after_rename(table.properties, moves))

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        return _statements((self,), before, catalog)

    @classmethod
    def combinable(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """All leading changes of the kind."""
        return leading_of_kind(cls, changes)

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        """The statements of all, ordered so that every new name is free when it is used.

        Each rename is a statement of its own: ``RENAME COLUMN a TO b`` takes no list
        (``renameTableColumn`` in ``SqlBaseParser.g4`` of Spark 4.1).
        """
        return _statements([c for c in changes if isinstance(c, RenameColumn)], before, catalog)

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        return self.map_key_problem(before)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        old, renamed = format_path(self.path), f"which this migration renames to `{format_path((self.to,))}`"
        return (
            WriterImpact(WriterKind.JOBS, f"fails if it writes `{old}` by name, {renamed}"),
            WriterImpact(
                ~WriterKind.JOBS, f"fails, at the latest when it restarts, if it writes `{old}`, {renamed}"
            ),
        )

    def reversal(self, before: Table) -> Reversal:
        return Reversal(
            Reversibility.YES, "undoing renames it back; values belong to the field id, which does not change"
        )

    def describe(self) -> str:
        return f"{format_path(self.path)} → {format_path((*self.path[:-1], self.to))}"


def _statements(renames: Sequence[RenameColumn], before: Table, catalog: str) -> tuple[Statement, ...]:
    table = table_sql(catalog, renames[0].table)
    entries = schema_index(before.schema)
    blocking = _blocking_identifiers(renames, before, entries)
    texts = []
    if blocking:
        fields = ", ".join(path_sql(entries[i].path) for i in blocking)
        texts.append(f"ALTER TABLE {table} DROP IDENTIFIER FIELDS {fields}")
    for path, to in _in_order(renames, before.schema):
        texts.append(f"ALTER TABLE {table} RENAME COLUMN {path_sql(path)} TO {quote(to)}")
    if blocking:
        names = {rename.field_id: rename.to for rename in renames}
        paths = [_path_after(i, entries, names) for i in entries if i in before.schema.identifier_ids]
        texts.append(f"ALTER TABLE {table} SET IDENTIFIER FIELDS {', '.join(map(path_sql, paths))}")
    return tuple(SqlStatement(text) for text in texts)


def _blocking_identifiers(
    renames: Sequence[RenameColumn], before: Table, entries: Mapping[int, IndexedField]
) -> list[int]:
    """Identifier fields inside structs that are renamed, or whose struct is renamed.

    Iceberg 1.12 looks up such a field by its old name and refuses the rename.
    """
    renamed = {rename.field_id for rename in renames}
    nested = {i for i in before.schema.identifier_ids if i in entries and entries[i].parent is not None}
    blocking = {i for i in nested if renamed & set(_line_up(i, entries))}
    return [i for i in entries if i in blocking] if blocking else []


def _line_up(field_id: int, entries: Mapping[int, IndexedField]) -> Iterator[int]:
    at: int | None = field_id
    while at is not None:
        yield at
        at = entries[at].parent


def _path_after(field_id: int, entries: Mapping[int, IndexedField], names: dict[int, str]) -> FieldPath:
    line = [names.get(i, entries[i].field.name) for i in _line_up(field_id, entries)]
    return tuple(reversed(line))


def _in_order(renames: Sequence[RenameColumn], schema: Schema) -> Iterator[tuple[FieldPath, str]]:
    """Path and new name of every rename, the deepest first.

    Names are compared case-insensitively, as in Spark.  If all new names are taken, as in a swap or in a
    change of case only, one field gets a temporary name first.
    """
    groups: dict[int | None, list[RenameColumn]] = {}
    for rename in sorted(renames, key=lambda r: -len(r.path)):
        groups.setdefault(schema_index(schema)[rename.field_id].parent, []).append(rename)
    for parent, waiting in groups.items():
        names = {f.id: f.name for f in fields_of(schema, parent)}
        taken = Counter(name.lower() for name in names.values())
        while waiting:
            rename, to = _next(waiting, names, taken)
            name = names[rename.field_id]
            yield (*rename.path[:-1], name), to
            names[rename.field_id] = to
            taken[name.lower()] -= 1
            taken[to.lower()] += 1
            if to == rename.to:
                waiting.remove(rename)


def _next(
    waiting: Sequence[RenameColumn], names: Mapping[int, str], taken: Mapping[str, int]
) -> tuple[RenameColumn, str]:
    """The rename that runs next, and its new name.

    :param taken: how many siblings have each name, in lower case.
    """
    for rename in waiting:
        if not taken[rename.to.lower()]:
            return rename, rename.to
    for rename in waiting:
        if names[rename.field_id] != passing_name(rename.field_id):
            return rename, passing_name(rename.field_id)
    # A field that is not renamed has the name: validation refuses the resulting table.
    return waiting[0], waiting[0].to
