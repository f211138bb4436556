"""Identifier fields make way for changes that Iceberg refuses on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Pair, Phase, Statement
from icemigrate.changes.identifier_terms import IdentifierChange
from icemigrate.changes.statements import alter_table
from icemigrate.model.schema import Entry
from icemigrate.model.table import Table
from icemigrate.sql.names import path_sql


class FreeIdentifier(IdentifierChange):
    """Fields are taken out of the identifier before they are dropped, made optional, or renamed in a struct.

    Iceberg refuses each ("Cannot delete identifier field"); a rename below a struct, or of the struct, fails
    too, so the field is taken out and put in again under its new name.
    """

    kind: ClassVar[str] = "free_identifier"
    phase: ClassVar[Phase] = Phase.FREE_IDENTIFIER

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """The identifier fields that something is going to happen to."""
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


def _in_the_way(pair: Pair, field_id: int, old: Entry) -> bool:
    new = pair.new.get(field_id)
    if new is None or (len(old.path) > 1 and old.path != new.path):
        return True
    return any(not entry.field.required for entry in _with_parents(pair, new))


def _with_parents(pair: Pair, entry: Entry) -> Iterator[Entry]:
    yield entry
    while entry.parent is not None:
        entry = pair.new[entry.parent]
        yield entry
