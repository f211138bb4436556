"""Names so similar that one is probably a typing error for the other."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from icemigrate.diagnostics import can_hint, has_edit_distance_one
from icemigrate.iceberg.names import TableName

SHORTEST = 4
"""Shorter names are similar by chance."""


def similar_name(name: TableName, known: Collection[TableName]) -> TableName | None:
    """A name in the same namespace with one edit, another case or other underscores.

    Names with different digits (``events_v1``, ``events_v2``) are different on purpose.
    """
    text, digits = name.name, _digits(name.name)
    if not can_hint(len(known)):
        return None
    # Cheap comparisons first: a file may create hundreds of tables beside hundreds of others.
    lengths = range(len(text) - 2, len(text) + 3)
    for other in [o for o in known if len(o.name) in lengths and o.namespace == name.namespace]:
        if (
            _digits(other.name) == digits
            and other.name != text
            and (_plain(other.name) == _plain(text) or _slipped(text, other.name))
        ):
            return other
    return None


@lru_cache(maxsize=4096)
def _digits(name: str) -> str:
    return "".join(c for c in name if c.isdigit())


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _slipped(a: str, b: str) -> bool:
    return min(len(a), len(b)) >= SHORTEST and has_edit_distance_one(a, b)
