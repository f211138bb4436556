"""Names that are so near to each other that one is likely a slip of the other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from icemigrate.model.names import TableName

SHORTEST = 4
"""Below this many characters names are near to each other by chance."""


def near_name(name: TableName, known: Iterable[TableName]) -> TableName | None:
    """A name in the same namespace that is one slip away, or differs only in case or underscores.

    Names with different digits (``events_v1``, ``events_v2``) are meant to differ.
    """
    text, digits = name.name, _digits(name.name)
    for other in known:
        # The cheap questions first: a file may create hundreds of tables beside hundreds of others.
        if (
            -2 <= len(other.name) - len(text) <= 2
            and _digits(other.name) == digits
            and other.namespace == name.namespace
            and other.name != text
            and (_plain(other.name) == _plain(text) or _one_slip(text, other.name))
        ):
            return other
    return None


@lru_cache(maxsize=4096)
def _digits(name: str) -> str:
    return "".join(c for c in name if c.isdigit())


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _one_slip(a: str, b: str) -> bool:
    """One character added, left out or changed, or two neighbours changed over."""
    if len(a) > len(b):
        a, b = b, a
    if len(a) < SHORTEST or len(b) - len(a) > 1:
        return False
    at = 0
    while at < len(a) and a[at] == b[at]:
        at += 1
    if len(a) < len(b):
        return a[at:] == b[at + 1 :]
    changed_over = b[at + 1 : at + 2] + b[at : at + 1]
    return a[at + 1 :] == b[at + 1 :] or a[at:] == changed_over + b[at + 2 :]
