"""Changes of the descriptions of tables and fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.alter_column import AlterColumnChange
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
)
from icemigrate.changes.field_changes import altered_alike, is_list_or_map_part
from icemigrate.changes.statement_shapes import always_reversible, unset_properties
from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.table import DESCRIPTION_PROPERTY, Table
from icemigrate.spark_sql.identifiers import table_sql
from icemigrate.spark_sql.literals import string_sql


class DescribeTable(Change):
    """Set the description of a table, which is the property ``comment``, or remove it.

    :param text: the description, ``None`` for none.
    """

    kind: ClassVar[str] = "describe_table"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"properties"})
    phase: ClassVar[ChangePhase] = ChangePhase.PROPERTIES

    text: str | None

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
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
        """``COMMENT ON TABLE``, or ``UNSET``, because ``COMMENT … IS NULL`` would set an empty text."""
        if self.text is None:
            return (unset_properties(catalog, self.table, [DESCRIPTION_PROPERTY]),)
        return (
            SqlStatement(f"COMMENT ON TABLE {table_sql(catalog, self.table)} IS {string_sql(self.text)}"),
        )

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("undoing restores the earlier description")

    def describe(self) -> str:
        """That the description changes, without the text, which may be long."""
        return "remove the description" if self.text is None else "describe the table"


_SHOWN = 60
"""How much of a description the plan shows, in characters."""


class DescribeColumn(AlterColumnChange):
    """Set the description of a field, or remove it (``doc=None``)."""

    kind: ClassVar[str] = "describe_column"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields"})
    phase: ClassVar[ChangePhase] = ChangePhase.ALTER

    doc: str | None

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[DescribeColumn]:
        for old, new in altered_alike(pair):
            if pair.before is not None and old.field.doc != new.field.doc:
                yield cls(pair.before.name, new.field.id, new.path, new.field.doc)

    @property
    def subject(self) -> Subject:
        return self.column_subject("description")

    def apply(self, table: Table) -> Table:
        return self.edit(table, lambda f: replace(f, doc=self.doc))

    def action(self) -> str | None:
        """The clause; ``None`` to remove a description: ``COMMENT ''`` would set an empty one."""
        return None if self.doc is None else f"COMMENT {string_sql(self.doc)}"

    def commit_text(self) -> str:
        return f"remove the description of {format_path(self.path)}"

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        if not is_list_or_map_part(before, self.field_id):
            yield from self.map_key_problem(before)
        elif self.doc is not None:
            yield PlanProblem(
                "nowhere-to-describe",
                self.table,
                self.subject,
                f"Iceberg stores no description of `{format_path(self.path)}`, the {self.path[-1]} of a"
                f" {'list' if self.path[-1] == 'element' else 'map'}",
                f"put it into the description of `{format_path(self.path[:-1])}`",
            )

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversibility.YES, "undoing restores the earlier description")

    def describe(self) -> str:
        name = format_path(self.path)
        if self.doc is None:
            return f"{name} without description"
        text = " ".join(self.doc.split())
        short = text if len(text) <= _SHOWN else text[: _SHOWN - 1].rstrip() + "…"
        return f'{name} described as "{short}"'
