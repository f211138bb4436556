"""A sort order makes way for a column that is dropped or promoted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Pair, Phase
from icemigrate.changes.sort_terms import OrderChange
from icemigrate.model.partitioning import accepts, is_taken_along
from icemigrate.model.sorting import SortField
from icemigrate.model.table import DISTRIBUTION_PROPERTY, Table
from icemigrate.model.terms import SortTerm


class FreeSortOrder(OrderChange):
    """The order changes before a column that it uses goes or is promoted, which would be refused otherwise.

    The new order is set at once where all its fields are there already; else there is none in between.
    """

    kind: ClassVar[str] = "free_sort_order"
    phase: ClassVar[Phase] = Phase.FREE_ORDER

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Whether the order that is there uses a field that goes, and the order that shall be does not; or
        what it makes of a field cannot stay while that gets its type."""
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


def _terms_now(pair: Pair, after: Table) -> Iterator[SortTerm]:
    """The terms of the new order whose source is there already and of a type that fits."""
    for field in after.sort_order.fields:
        entry = pair.old.get(field.source_ids[0])
        if entry is not None and accepts(field.transform, entry.field.type) and _may_stay(pair, field):
            yield SortTerm(entry.path, field.transform, field.direction, field.null_order)


def _may_stay(pair: Pair, term: SortField) -> bool:
    """Whether a term can be in the order while columns change."""
    old, new = pair.old.get(term.source_ids[0]), pair.new.get(term.source_ids[0])
    if old is None or new is None:
        return new is not None
    return is_taken_along(term.transform, old.field.type, new.field.type)
