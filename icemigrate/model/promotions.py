"""The one table of legal type promotions (specification, "Schema Evolution")."""

from __future__ import annotations

from icemigrate.model.types import Decimal, Primitive, Type, is_nested

_PROMOTIONS: dict[tuple[str, str], int] = {
    ("int", "long"): 1,
    ("float", "double"): 1,
    ("date", "timestamp"): 3,
    ("date", "timestamp_ns"): 3,
}
"""From, to, and the first format version that allows it."""


def promotion_since(old: Type, new: Type) -> int | None:
    """First format version that allows ``old`` → ``new``; ``None`` where none does.

    Decimals may grow in precision, never change in scale.  ``unknown`` goes to every type but
    another kind of nesting is never reached otherwise.
    """
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        return 1 if old.scale == new.scale and new.precision > old.precision else None
    if old == Primitive("unknown") and not is_nested(new):
        return 3
    if isinstance(old, Primitive) and isinstance(new, Primitive):
        return _PROMOTIONS.get((old.name, new.name))
    return None


def is_promotion(old: Type, new: Type, format_version: int) -> bool:
    """Whether ``old`` may become ``new`` in a table of this format version."""
    since = promotion_since(old, new)
    return since is not None and format_version >= since
