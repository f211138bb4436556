"""Names that are so near to each other that one is likely a slip of the other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from icemigrate.model.names import TableName


def near_name(name: TableName, known: Iterable[TableName]) -> TableName | None:
    """A name in the same namespace that is one slip of a finger away, or differs only in case or underscores.

    Names that differ in nothing but digits (``events_v1``, ``events_v2``) are meant.
    """
    same = (other for other in known if other.namespace == name.namespace and other != name)
    return next((other for other in same if _is_slip(name.name, other.name)), None)


@lru_cache(maxsize=65536)
def _is_slip(a: str, b: str) -> bool:
    if abs(len(a) - len(b)) > 2 or (a[:1] != b[:1] and a[-1:] != b[-1:]):
        return False
    if _letters(a) == _letters(b):
        return a.lower().replace("_", "") == b.lower().replace("_", "")
    return _one_edit(a, b) and min(len(a), len(b)) > 3


@lru_cache(maxsize=4096)
def _letters(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalpha())


def _one_edit(a: str, b: str) -> bool:
    """One character added, left out, changed, or two neighbours changed over."""
    if len(a) > len(b):
        a, b = b, a
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    rest_a, rest_b = a[at:], b[at:]
    if len(a) < len(b):
        return rest_a == rest_b[1:]
    return rest_a[1:] == rest_b[1:] or (rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:])
