"""What the kinds that change the identifier have in common."""

from __future__ import annotations

from icemigrate.changes.base import Change, Reversal, Subject
from icemigrate.changes.partition_terms import source_id
from icemigrate.changes.statements import reversible
from icemigrate.frozen import replace
from icemigrate.model.names import Path, format_path
from icemigrate.model.table import Table


class IdentifierChange(Change):
    """A change of the identifier fields.

    :param fields: the paths of all identifier fields that shall be, as they are when the change runs.
    """

    fields: tuple[Path, ...]

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("identifier",)

    def apply(self, table: Table) -> Table:
        """The table with the identifier."""
        ids = frozenset(source_id(table, path) for path in self.fields)
        return replace(table, schema=replace(table.schema, identifier_ids=ids))

    def reversal(self, before: Table) -> Reversal:
        """The earlier identifier is set again."""
        return reversible("undoing sets the earlier identifier again")

    def leaving(self, before: Table) -> tuple[Path, ...]:
        """The paths of the fields that are identifier fields and shall not be."""
        ids = before.schema.identifier_ids
        return tuple(path for path, f in before.schema.walk() if f.id in ids and path not in self.fields)

    def describe(self) -> str:
        """The fields."""
        if not self.fields:
            return "identify rows by nothing"
        return f"identify rows by {', '.join(format_path(p) for p in self.fields)}"
