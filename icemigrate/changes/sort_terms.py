"""What the kinds that set a sort order have in common, and how an order meets the write distribution.

Iceberg's ``WRITE`` statements set both: ``ORDERED BY`` sets the property ``write.distribution-mode`` to
``range``, ``UNORDERED`` to ``none``, ``DISTRIBUTED BY PARTITION`` to ``hash``; only ``LOCALLY ORDERED BY``
leaves it.  So an order and the distribution that shall be there afterwards are one change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.changes.base import Change, Reversal, Statement, Subject
from icemigrate.changes.partition_terms import source_id
from icemigrate.changes.statements import alter_table, reversible, set_properties, unset_properties
from icemigrate.frozen import replace
from icemigrate.model.schema import Schema
from icemigrate.model.sorting import UNSORTED, SortField, SortOrder
from icemigrate.model.table import DISTRIBUTION_PROPERTY, Table
from icemigrate.model.terms import SortTerm
from icemigrate.sql.terms import sort_sql


def terms_of(order: SortOrder, schema: Schema) -> tuple[SortTerm, ...]:
    """The terms of an order; its sources must be in the schema."""
    return tuple(_term(f, schema) for f in order.fields)


def _term(field: SortField, schema: Schema) -> SortTerm:
    path = schema.path_of(field.source_ids[0])
    assert path is not None, f"sort field {field.source_ids[0]} has no source"
    return SortTerm(path, field.transform, field.direction, field.null_order)


def order_sql(terms: Sequence[SortTerm]) -> str:
    """The terms as they stand behind ``ORDERED BY``."""
    return ", ".join(sort_sql(t.transform, t.source, t.direction, t.null_order) for t in terms)


class OrderChange(Change):
    """A change of the sort order.

    :param terms: the order that shall be, none for no order.
    :param distribution: what ``write.distribution-mode`` shall be afterwards; ``None`` for not set.
    """

    terms: tuple[SortTerm, ...]
    distribution: str | None

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("sort_by",)

    def apply(self, table: Table) -> Table:
        """The table under the order, which has the id that ``TableMetadata`` gives it."""
        fields = tuple(
            SortField((source_id(table, t.source),), t.transform, t.direction, t.null_order)
            for t in self.terms
        )
        properties = {k: v for k, v in table.properties.items() if k != DISTRIBUTION_PROPERTY}
        if self.distribution is not None:
            properties[DISTRIBUTION_PROPERTY] = self.distribution
        return replace(_with_order(table, fields), properties=properties)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``WRITE`` statement, and one more where that leaves another distribution than asked for."""
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
        """What follows ``WRITE``, and the distribution that is there afterwards."""
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
        """The earlier order is set again."""
        return reversible("undoing sets the earlier order again; files written meanwhile stay as they are")

    def describe(self) -> str:
        """The order."""
        return f"sort by {', '.join(map(str, self.terms))}" if self.terms else "stop sorting"


def _with_order(table: Table, fields: tuple[SortField, ...]) -> Table:
    """An order that says the same as an earlier one is that one again; unsorted always has the id 0."""
    orders = sorted((*table.older_orders, table.sort_order), key=lambda o: o.id)
    new = next((o for o in orders if o.fields == fields), None)
    if new is None:
        new = SortOrder(fields, max(o.id for o in orders) + 1) if fields else UNSORTED
    return replace(table, sort_order=new, older_orders=tuple(o for o in orders if o.id != new.id))
