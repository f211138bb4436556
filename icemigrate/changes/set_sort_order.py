"""The sort order that writers keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Pair, Phase
from icemigrate.changes.sort_terms import OrderChange, terms_of
from icemigrate.model.table import DISTRIBUTION_PROPERTY


class SetSortOrder(OrderChange):
    """The order is set when all columns are there; files that were written stay as they are."""

    kind: ClassVar[str] = "set_sort_order"
    phase: ClassVar[Phase] = Phase.ORDER

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Whether the terms differ."""
        if pair.both is None:
            return
        before, after = pair.both
        known = all(f.source_ids[0] in pair.new for f in after.sort_order.fields)
        if known and before.sort_order.fields != after.sort_order.fields:
            terms = terms_of(after.sort_order, after.schema)
            yield cls(before.name, terms, after.properties.get(DISTRIBUTION_PROPERTY))
