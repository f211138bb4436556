"""A field that is called otherwise from now on; its id, and so its values, stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from icemigrate.changes.base import (
    Change,
    Harm,
    Pair,
    Phase,
    Problem,
    Reversal,
    Reversible,
    Sql,
    Statement,
    Subject,
)
from icemigrate.changes.fields import FieldChange
from icemigrate.changes.statements import of_one_kind
from icemigrate.frozen import replace
from icemigrate.model.column_properties import after_rename
from icemigrate.model.names import Path, format_path, passing_name, quote_name
from icemigrate.model.schema import Entry, Schema, index
from icemigrate.model.schema_edits import fields_of
from icemigrate.model.table import Table
from icemigrate.model.writers import Whom
from icemigrate.sql.names import path_sql, quote, table_sql


class RenameColumn(FieldChange):
    """Rename a field.

    Renames run from the deepest field up, so that every path holds the old names of what is above.

    :param to: the new leaf name.
    """

    kind: ClassVar[str] = "rename_column"
    phase: ClassVar[Phase] = Phase.RENAME
    symbol: ClassVar[str] = "→"

    to: str

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[RenameColumn]:
        if pair.before is None:
            return
        renamed = [both for both in pair.altered if both[0].field.name != both[1].field.name]
        for old, new in sorted(renamed, key=lambda both: -len(both[0].path)):
            yield cls(pair.before.name, old.field.id, old.path, new.field.name)

    @property
    def subject(self) -> Subject:
        return ("renames", format_path(self.path))

    def apply(self, table: Table) -> Table:
        """Between the renames of a swap two siblings have one name; the field is found by its id.

        The properties of the one whose name is taken wait under its passing name until its own
        rename runs, as they do when the statements run.
        """
        schema = table.schema
        siblings = fields_of(schema, schema.parent_of(self.field_id))
        parent, name = self.path[:-1], next(f.name for f in siblings if f.id == self.field_id)
        others = [f for f in siblings if f.name in (name, self.to) and f.id != self.field_id]
        source = passing_name(self.field_id) if any(f.name == name for f in others) else name
        moves: dict[Path, Path] = {(*parent, source): (*parent, self.to)}
        for other in others:
            if other.name == self.to:
                taken: Path = (*parent, other.name)
                moves[taken] = (*parent, passing_name(other.id))
        renamed = self.edit(table, lambda f: replace(f, name=self.to))
        return replace(renamed, properties=after_rename(table.properties, moves))

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        return _statements((self,), before, catalog)

    @classmethod
    def alike(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """All neighbours of the kind."""
        return of_one_kind(cls, changes)

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        """The statements of all, ordered so that every new name is free when it is taken.

        Each rename is a statement of its own: ``RENAME COLUMN a TO b`` takes no list, unlike all else that is
        said of columns (``renameTableColumn`` in ``SqlBaseParser.g4`` of Spark 4.1).
        """
        return _statements([c for c in changes if isinstance(c, RenameColumn)], before, catalog)

    def problems(self, before: Table) -> Iterator[Problem]:
        return self.map_key_problem(before)

    def harms(self) -> tuple[Harm, ...]:
        old, then = format_path(self.path), f"which is called `{format_path((self.to,))}` then"
        return (
            Harm(Whom.JOBS, f"fails if it gives `{old}` by name, {then}"),
            Harm(~Whom.JOBS, f"gives `{old}`, {then}"),
        )

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversible.YES, "undoing renames it back; values belong to the field id, which stays")

    def describe(self) -> str:
        return f"{format_path(self.path)} → {quote_name(self.to)}"


def _statements(renames: Sequence[RenameColumn], before: Table, catalog: str) -> tuple[Statement, ...]:
    table = table_sql(catalog, renames[0].table)
    entries = index(before.schema)
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
    return tuple(Sql(text) for text in texts)


def _blocking_identifiers(
    renames: Sequence[RenameColumn], before: Table, entries: Mapping[int, Entry]
) -> list[int]:
    """Identifier fields inside structs that are renamed, or whose struct is.

    Iceberg 1.12 looks such a field up by a name that it no longer has, and refuses the rename.
    """
    renamed = {rename.field_id for rename in renames}
    nested = {i for i in before.schema.identifier_ids if i in entries and entries[i].parent is not None}
    blocking = {i for i in nested if renamed & set(_line_up(i, entries))}
    return [i for i in entries if i in blocking] if blocking else []


def _line_up(field_id: int, entries: Mapping[int, Entry]) -> Iterator[int]:
    at: int | None = field_id
    while at is not None:
        yield at
        at = entries[at].parent


def _path_after(field_id: int, entries: Mapping[int, Entry], names: dict[int, str]) -> Path:
    line = [names.get(i, entries[i].field.name) for i in _line_up(field_id, entries)]
    return tuple(reversed(line))


def _in_order(renames: Sequence[RenameColumn], schema: Schema) -> Iterator[tuple[Path, str]]:
    """Path and new name of every rename that is to run, the deepest first.

    Names are compared without case, as Spark compares them.  Where all new names are taken, which
    is so in a swap and in a change of case alone, one field steps aside.
    """
    groups: dict[int | None, list[RenameColumn]] = {}
    for rename in sorted(renames, key=lambda r: -len(r.path)):
        groups.setdefault(index(schema)[rename.field_id].parent, []).append(rename)
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
    """The rename that runs next, and the name it goes to.

    :param taken: how many siblings have each name, in lower case.
    """
    for rename in waiting:
        if not taken[rename.to.lower()]:
            return rename, rename.to
    for rename in waiting:
        if names[rename.field_id] != passing_name(rename.field_id):
            return rename, passing_name(rename.field_id)
    # Taken for good, by a field that keeps its name: the table that results is refused.
    return waiting[0], waiting[0].to
