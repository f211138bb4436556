"""The table is partitioned by a field more, or by another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import (
    OTHER_PARTITIONING,
    Change,
    Harm,
    Pair,
    Phase,
    Reversal,
    Statement,
    Subject,
)
from icemigrate.changes.partition_terms import (
    existing_field_sql,
    named,
    source_id,
    spec_difference,
)
from icemigrate.changes.statements import alter_table, reversible
from icemigrate.model.names import Path, format_path
from icemigrate.model.partitioning import Transform
from icemigrate.model.spec_update import add_partition_field, replace_partition_field
from icemigrate.model.table import Table
from icemigrate.model.terms import term_text
from icemigrate.sql.names import quote
from icemigrate.sql.terms import transform_sql


class AddPartitionField(Change):
    """A partition field is added, perhaps in place of another one of the same source.

    Files that are there stay as they are.  The name is always said: left out, Iceberg may take an earlier
    field of the same source and transform under the name that one had.

    :param source: path of the source when the change runs.
    :param name: the new field's name.
    :param replaces: name of the field that goes in the same statement.
    """

    kind: ClassVar[str] = "add_partition_field"
    phase: ClassVar[Phase] = Phase.PARTITION
    symbol: ClassVar[str] = "+"

    source: Path
    transform: Transform
    name: str
    replaces: str | None = None

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """The fields that are new, in the order of the new spec."""
        found = spec_difference(pair)
        replaced = {new: old.name for old, new in found.replaced}
        for field in found.added:
            assert pair.before is not None
            source = pair.new[field.source_ids[0]].path
            yield cls(pair.before.name, source, field.transform, field.name, replaced.get(field))

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("partition_by",)

    def apply(self, table: Table) -> Table:
        """The table under the spec with it."""
        source = source_id(table, self.source)
        if self.replaces is None:
            return add_partition_field(table, source, self.transform, self.name)
        return replace_partition_field(table, self.replaces, source, self.transform, self.name)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``ADD`` or ``REPLACE PARTITION FIELD``."""
        new = f"{transform_sql(self.transform, self.source)} AS {quote(self.name)}"
        if self.replaces is None:
            return (alter_table(catalog, self.table, f"ADD PARTITION FIELD {new}"),)
        old = existing_field_sql(before, named(before, self.replaces))
        return (alter_table(catalog, self.table, f"REPLACE PARTITION FIELD {old} WITH {new}"),)

    def harms(self) -> tuple[Harm, ...]:
        return (OTHER_PARTITIONING,)

    def reversal(self, before: Table) -> Reversal:
        """The earlier spec is set again; format version 1 keeps a void field, and that its source."""
        again = "undoing sets the earlier partitioning again"
        if before.format_version == 1:
            source = format_path(self.source)
            return reversible(
                f"{again}; format version 1 keeps a void field in its place, so that `{source}` stays even "
                "where this migration adds it"
            )
        return reversible(f"{again}; files written meanwhile stay as they are")

    def describe(self) -> str:
        """The term, and what it takes the place of."""
        text = f"partition by {term_text(self.transform, self.source)} as {self.name}"
        return text if self.replaces is None else f"{text} instead of {self.replaces}"
