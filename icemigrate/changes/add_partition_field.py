"""Addition of a partition field, or its replacement by another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    STALE_PARTITIONING_IMPACT,
    Change,
    ChangePhase,
    Reversal,
    Statement,
    Subject,
    TablePair,
    TablePart,
    WriterImpact,
)
from icemigrate.changes.partition_terms import (
    existing_field_sql,
    lacking_fields,
    lacking_sources,
    partition_field_named,
    source_id,
    spec_difference,
)
from icemigrate.changes.statement_shapes import alter_table, always_reversible
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.partition_evolution import add_partition_field, replace_partition_field
from icemigrate.iceberg.partitioning import Transform, term_text
from icemigrate.iceberg.table import Table
from icemigrate.spark_sql.expressions import transform_sql
from icemigrate.spark_sql.identifiers import quote


class AddPartitionField(Change):
    """Add a partition field, perhaps in place of another one of the same source.

    Existing files keep their partitioning.  The statement always has a name: without one, Iceberg may reuse
    an earlier field of the same source and transform, under the name of that field.

    :param source: path of the source when the change runs.
    :param name: the new field's name.
    :param replaces: name of the field that the same statement removes.
    """

    kind: ClassVar[str] = "add_partition_field"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"spec"})
    phase: ClassVar[ChangePhase] = ChangePhase.PARTITION
    symbol: ClassVar[str] = "+"

    source: FieldPath
    transform: Transform
    name: str
    replaces: str | None = None

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
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

    def lacks(self, table: Table) -> Iterator[str]:
        """The source, and the field that is replaced."""
        yield from lacking_sources(table, (self.source,))
        yield from lacking_fields(table, () if self.replaces is None else (self.replaces,))

    def apply(self, table: Table) -> Table:
        """The table with the field in its spec."""
        source = source_id(table, self.source)
        if self.replaces is None:
            return add_partition_field(table, source, self.transform, self.name)
        return replace_partition_field(table, self.replaces, source, self.transform, self.name)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``ADD`` or ``REPLACE PARTITION FIELD``."""
        new = f"{transform_sql(self.transform, self.source)} AS {quote(self.name)}"
        if self.replaces is None:
            return (alter_table(catalog, self.table, f"ADD PARTITION FIELD {new}"),)
        old = existing_field_sql(before, partition_field_named(before, self.replaces))
        return (alter_table(catalog, self.table, f"REPLACE PARTITION FIELD {old} WITH {new}"),)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        return (STALE_PARTITIONING_IMPACT,)

    def reversal(self, before: Table) -> Reversal:
        """Undoing restores the earlier spec; format version 1 keeps a void field, which needs its source."""
        again = "undoing restores the earlier partitioning"
        if before.format_version == 1:
            source = format_path(self.source)
            return always_reversible(
                f"{again}; format version 1 keeps a void field in its place, so `{source}` stays even "
                "if this migration adds it"
            )
        return always_reversible(f"{again}; files written until then are not changed")

    def describe(self) -> str:
        """The term, and the name of the replaced field."""
        text = f"partition by {term_text(self.transform, self.source)} as {self.name}"
        return text if self.replaces is None else f"{text} instead of {self.replaces}"
