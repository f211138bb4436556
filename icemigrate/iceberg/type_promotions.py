"""Legal promotions of types (specification, "Schema Evolution")."""

from __future__ import annotations

from icemigrate.iceberg.types import Decimal, JsonValue, Primitive, Type, is_nested

_PROMOTIONS: dict[tuple[str, str], int] = {
    ("int", "long"): 1,
    ("float", "double"): 1,
    ("date", "timestamp"): 3,
    ("date", "timestamp_ns"): 3,
}
"""From, to, and the first format version that allows it."""


_DATE = Primitive("date")


def promotion_since(old: Type, new: Type) -> int | None:
    """First format version that allows ``old`` → ``new``; ``None`` where none does.

    Decimals may grow in precision, never change in scale.  ``unknown`` can become every primitive type; a
    struct, a list or a map is not a promotion.
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


def is_read_back(old: Type, new: Type) -> bool:
    """Whether rows written under ``old`` are read under ``new``, which must be a promotion of it.

    The specification allows date to timestamp, and no reader of Iceberg's Java library 1.12 supports it:
    Spark fails on such a row, misses it in a filter, or returns ``1970-01-01 00:00:00.020455`` for
    ``2026-01-02`` (``max``); PyIceberg 0.12 fails; DuckDB 1.5 reads it.  So the promotion is only allowed for
    tables without rows.
    """
    return old != _DATE or new == _DATE


def promoted_default(value: JsonValue, old: Type, new: Type) -> JsonValue:
    """A default of ``old`` as one of ``new``, in the specification's JSON form (Appendix D).

    A date is midnight of that day; all other promotions write a value alike.
    """
    if old == _DATE and isinstance(value, str) and new in (Primitive("timestamp"), Primitive("timestamp_ns")):
        return f"{value}T00:00:00"
    return value
