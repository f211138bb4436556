"""Moments as texts: a date and a time with ``T`` or a blank between them, and a zone or none."""

from __future__ import annotations

import re
from datetime import datetime

MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?", re.IGNORECASE
)
"""Groups: the date, hours and minutes, seconds, their fraction, the zone."""


def as_read(text: str) -> datetime | None:
    """The moment of a text as PySpark gives it: without a zone, by the clock of this process.

    ``None`` where it is no moment, or finer than a microsecond.
    """
    match = MOMENT.fullmatch(text)
    if match is None:
        return None
    day, minutes, seconds, fraction, zone = match.groups()
    # Before Python 3.11 it takes neither `Z` nor a zone without a colon.
    zone = re.sub(r"(\d\d)(\d\d)", r"\1:\2", (zone or "").upper().replace("Z", "+00:00"))
    fraction = (fraction or "").rstrip("0").ljust(6, "0")
    try:
        moment = datetime.fromisoformat(f"{day} {minutes}:{seconds or '00'}.{fraction}{zone}")
        return moment if moment.tzinfo is None else moment.astimezone().replace(tzinfo=None)
    except (ValueError, OverflowError):  # the first and the last day of all have no time in other zones
        return None
