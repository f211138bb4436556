"""What a table is for, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Pair, Phase, Reversal, Sql, Statement, Subject
from icemigrate.changes.statements import reversible, unset_properties
from icemigrate.frozen import replace
from icemigrate.model.table import DESCRIPTION_PROPERTY, Table
from icemigrate.sql.literals import string_sql
from icemigrate.sql.names import table_sql


class DescribeTable(Change):
    """The table's description changes; it is kept in the property ``comment``.

    :param text: the description, ``None`` for none.
    """

    kind: ClassVar[str] = "describe_table"
    phase: ClassVar[Phase] = Phase.PROPERTIES

    text: str | None

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Whether the descriptions differ."""
        if pair.both is None:
            return
        before, after = (table.properties.get(DESCRIPTION_PROPERTY) for table in pair.both)
        if before != after:
            yield cls(pair.both[0].name, after)

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("description",)

    def apply(self, table: Table) -> Table:
        """The table with the description."""
        rest = {k: v for k, v in table.properties.items() if k != DESCRIPTION_PROPERTY}
        text = {} if self.text is None else {DESCRIPTION_PROPERTY: self.text}
        return replace(table, properties={**rest, **text})

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``COMMENT ON TABLE``; with ``NULL`` that would leave an empty text, so none is an ``UNSET``."""
        if self.text is None:
            return (unset_properties(catalog, self.table, [DESCRIPTION_PROPERTY]),)
        return (Sql(f"COMMENT ON TABLE {table_sql(catalog, self.table)} IS {string_sql(self.text)}"),)

    def reversal(self, before: Table) -> Reversal:
        """The text goes back."""
        return reversible("undoing sets the earlier description again")

    def describe(self) -> str:
        """That it changes; the text may be long."""
        return "take the description away" if self.text is None else "describe the table"
