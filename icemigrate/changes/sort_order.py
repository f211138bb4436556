"""Changes of the sort order, together with the write distribution.

Iceberg's ``WRITE`` statements set both: ``ORDERED BY`` sets the property ``write.distribution-mode`` to
``range``, ``UNORDERED`` to ``none``, ``DISTRIBUTED BY PARTITION`` to ``hash``; only ``LOCALLY ORDERED BY``
does not change it.  Therefore the order and the distribution after it are one change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from icemigrate.changes.change import Change, ChangePhase, Reversal, Statement, Subject, TablePair, TablePart
from icemigrate.changes.partition_terms import lacking_sources, source_id
from icemigrate.changes.statement_shapes import (
    alter_table,
    always_reversible,
    set_properties,
    unset_properties,
)
from icemigrate.frozen import replace
from icemigrate.iceberg.partitioning import (
    UNSORTED,
    SortField,
    SortOrder,
    SortTerm,
    accepts_source_type,
    can_promote_source,
)
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import DISTRIBUTION_PROPERTY, Table
from icemigrate.spark_sql.expressions import sort_sql


def terms_of(order: SortOrder, schema: Schema) -> tuple[SortTerm, ...]:
    """The terms of an order; its sources must be in the schema."""
    return tuple(_term(f, schema) for f in order.fields)


def _term(field: SortField, schema: Schema) -> SortTerm:
    path = schema.path_of(field.source_ids[0])
    assert path is not None, f"sort field {field.source_ids[0]} has no source"
    return SortTerm(path, field.transform, field.direction, field.null_order)


def order_sql(terms: Sequence[SortTerm]) -> str:
    """The terms as in ``ORDERED BY``."""
    return ", ".join(sort_sql(t.transform, t.source, t.direction, t.null_order) for t in terms)


class SortOrderChange(Change):
    """A change of the sort order.

    :param terms: the order after the change, empty for none.
    :param distribution: ``write.distribution-mode`` after the change; ``None`` if it is not set.
    """

    terms: tuple[SortTerm, ...]
    distribution: str | None

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("sort_by",)

    def lacks(self, table: Table) -> Iterator[str]:
        return lacking_sources(table, (term.source for term in self.terms))

    def apply(self, table: Table) -> Table:
        """The table with the order, whose id is the one that ``TableMetadata`` assigns."""
        fields = tuple(
            SortField((source_id(table, t.source),), t.transform, t.direction, t.null_order)
            for t in self.terms
        )
        properties = {k: v for k, v in table.properties.items() if k != DISTRIBUTION_PROPERTY}
        if self.distribution is not None:
            properties[DISTRIBUTION_PROPERTY] = self.distribution
        return replace(_with_order(table, fields), properties=properties)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``WRITE`` statement, and one more if that sets a different distribution."""
        return tuple(self._statements(before.properties.get(DISTRIBUTION_PROPERTY), catalog))

    def _statements(self, distribution: str | None, catalog: str) -> Iterator[Statement]:
        clause, left = self._clause(distribution)
        yield alter_table(catalog, self.table, f"WRITE {clause}")
        if left == self.distribution:
            return
        if self.distribution is None:
            yield unset_properties(catalog, self.table, [DISTRIBUTION_PROPERTY])
        else:
            yield set_properties(catalog, self.table, {DISTRIBUTION_PROPERTY: self.distribution})

    def _clause(self, distribution: str | None) -> tuple[str, str | None]:
        """The clause after ``WRITE``, and the distribution that it results in."""
        if not self.terms:
            return (
                ("DISTRIBUTED BY PARTITION", "hash") if self.distribution == "hash" else ("UNORDERED", "none")
            )
        order = order_sql(self.terms)
        if self.distribution == distribution:
            return f"LOCALLY ORDERED BY {order}", distribution
        if self.distribution == "range":
            return f"ORDERED BY {order}", "range"
        if self.distribution == "hash":
            return f"DISTRIBUTED BY PARTITION LOCALLY ORDERED BY {order}", "hash"
        return f"LOCALLY ORDERED BY {order}", distribution

    def reversal(self, before: Table) -> Reversal:
        return always_reversible(
            "undoing restores the earlier order; files written until then are not changed"
        )

    def describe(self) -> str:
        return f"sort by {', '.join(map(str, self.terms))}" if self.terms else "stop sorting"


def _with_order(table: Table, fields: tuple[SortField, ...]) -> Table:
    """The table with an order, which reuses an equal earlier one; unsorted always has the id 0."""
    orders = sorted((*table.older_orders, table.sort_order), key=lambda o: o.id)
    new = next((o for o in orders if o.fields == fields), None)
    if new is None:
        new = SortOrder(fields, max(o.id for o in orders) + 1) if fields else UNSORTED
    return replace(table, sort_order=new, older_orders=tuple(o for o in orders if o.id != new.id))


class FreeSortOrder(SortOrderChange):
    """Change the order before a column that it uses is dropped or promoted, which Iceberg would refuse.

    The new order is set at once if all its fields exist already; otherwise the order is removed meanwhile.
    """

    kind: ClassVar[str] = "free_sort_order"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"sort_order"})
    phase: ClassVar[ChangePhase] = ChangePhase.FREE_ORDER

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """One change, if the old order uses a field that is dropped, or a transform that does not allow the
        field's promotion."""
        if pair.both is None:
            return
        before, after = pair.both
        if before.sort_order.fields == after.sort_order.fields:
            return
        if all(_may_stay(pair, f) for f in before.sort_order.fields):
            return
        terms = tuple(_terms_now(pair, after))
        complete = len(terms) == len(after.sort_order.fields)
        state = after if complete else before
        yield cls(before.name, terms if complete else (), state.properties.get(DISTRIBUTION_PROPERTY))


def _terms_now(pair: TablePair, after: Table) -> Iterator[SortTerm]:
    """The terms of the new order whose source exists already with a type that fits."""
    for field in after.sort_order.fields:
        entry = pair.old.get(field.source_ids[0])
        if (
            entry is not None
            and accepts_source_type(field.transform, entry.field.type)
            and _may_stay(pair, field)
        ):
            yield SortTerm(entry.path, field.transform, field.direction, field.null_order)


def _may_stay(pair: TablePair, term: SortField) -> bool:
    """Whether a term can be in the order while columns change."""
    old, new = pair.old.get(term.source_ids[0]), pair.new.get(term.source_ids[0])
    if old is None or new is None:
        return new is not None
    return can_promote_source(term.transform, old.field.type, new.field.type)


class SetSortOrder(SortOrderChange):
    """Set the order, after all its columns exist; existing files are not sorted again."""

    kind: ClassVar[str] = "set_sort_order"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"sort_order"})
    phase: ClassVar[ChangePhase] = ChangePhase.ORDER

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """One change, if the terms differ."""
        if pair.both is None:
            return
        before, after = pair.both
        known = all(f.source_ids[0] in pair.new for f in after.sort_order.fields)
        if known and before.sort_order.fields != after.sort_order.fields:
            terms = terms_of(after.sort_order, after.schema)
            yield cls(before.name, terms, after.properties.get(DISTRIBUTION_PROPERTY))
