"""Values of Python as expressions of DuckDB's SQL."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal

from icemigrate.errors import UsageError

_EXACT_DIGITS = 15
"""The digits that a decimal of DuckDB can have so that its cast to a double is the nearest one."""


def expressions(updates: Mapping[str, object]) -> dict[str, str]:
    """The new values of columns as expressions.

    :param updates: a text is an expression already.
    :raises UsageError: a value has no expression.
    """
    return {column: _expression(column, value) for column, value in updates.items()}


def _expression(column: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (date, datetime, time)):
        return f"'{value.isoformat()}'"
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"  # DuckDB reads a number with an exponent as a floating-point one
    if value == 0 and isinstance(value, float):
        return "-0e0" if math.copysign(1, value) < 0 else "0"  # a decimal, such as `-0.0`, has no sign then
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return _float_text(value)
    raise UsageError(
        f"column `{column}`: a value of type {type(value).__name__} cannot be set",
        "give an expression of SQL as a text, such as `[1, 2]` or `'paid'`",
    )


def _float_text(value: float) -> str:
    """A finite number that DuckDB reads without a change, as a decimal where that is exact."""
    text = repr(float(value))
    digits = sum(map(str.isdigit, text))
    return text if "e" in text or digits <= _EXACT_DIGITS else f"{text}e0"
