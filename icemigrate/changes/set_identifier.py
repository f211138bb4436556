"""The fields that identify a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Harm, Pair, Phase, Statement
from icemigrate.changes.identifier_terms import IdentifierChange
from icemigrate.changes.statements import alter_table
from icemigrate.model.table import Table
from icemigrate.model.writers import Whom
from icemigrate.sql.names import path_sql


class SetIdentifier(IdentifierChange):
    """The identifier is set when all columns are there and required."""

    kind: ClassVar[str] = "set_identifier"
    phase: ClassVar[Phase] = Phase.IDENTIFIER

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Whether the fields differ."""
        if pair.both is None:
            return
        before, after = (table.schema.identifier_ids for table in pair.both)
        if before != after:
            paths = tuple(entry.path for i, entry in pair.new.items() if i in after)
            yield cls(pair.both[0].name, paths)

    def harms(self) -> tuple[Harm, ...]:
        return (Harm(Whom.STREAMS, "goes on finding rows by the identifier that it started with"),)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``SET IDENTIFIER FIELDS``, or a ``DROP`` of all, since nothing cannot be set."""
        if self.fields:
            action = f"SET IDENTIFIER FIELDS {', '.join(path_sql(p) for p in self.fields)}"
        else:
            action = f"DROP IDENTIFIER FIELDS {', '.join(path_sql(p) for p in self.leaving(before))}"
        return (alter_table(catalog, self.table, action),)
