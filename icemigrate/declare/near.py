"""Names that are so near to each other that one is likely a slip of the other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from icemigrate.diagnostics import can_hint, one_slip
from icemigrate.model.names import TableName

SHORTEST = 4
"""Below this many characters names are near to each other by chance."""


def near_name(name: TableName, known: Iterable[TableName]) -> TableName | None:
    """A name in the same namespace that is one slip away, or differs only in case or underscores.

    Names with different digits (``events_v1``, ``events_v2``) are meant to differ.
    """
    text, digits = name.name, _digits(name.name)
    if not can_hint(0):
        return None
    for other in known:
        if not can_hint(1):
            return None
        # The cheap questions first: a file may create hundreds of tables beside hundreds of others.
        if (
            -2 <= len(other.name) - len(text) <= 2
            and _digits(other.name) == digits
            and other.namespace == name.namespace
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
    return min(len(a), len(b)) >= SHORTEST and one_slip(a, b)
