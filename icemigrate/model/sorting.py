"""Sort orders (specification, "Sorting")."""

from __future__ import annotations

from icemigrate.frozen import Frozen
from icemigrate.model.partitioning import IDENTITY, Transform

ASC, DESC = "asc", "desc"
NULLS_FIRST, NULLS_LAST = "nulls-first", "nulls-last"


class SortField(Frozen):
    """One term of an order; ``direction`` and ``null_order`` are the specification's words."""

    source_ids: tuple[int, ...]
    transform: Transform = IDENTITY
    direction: str = ASC
    null_order: str = NULLS_FIRST


class SortOrder(Frozen):
    """Terms in order; none is the unsorted order."""

    fields: tuple[SortField, ...] = ()
    id: int = 0


UNSORTED = SortOrder()


def default_null_order(direction: str) -> str:
    """Null order where none is said: first when ascending, last when descending (as Spark and Iceberg do)."""
    return NULLS_FIRST if direction == ASC else NULLS_LAST
