"""Whether the result of a statement depends on the session's time zone."""

from __future__ import annotations

import re

from icemigrate.data_steps.sql_syntax_checks import without_texts_and_comments
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Primitive

DEFAULT_TIME_ZONE = "UTC"
"""The zone of data steps where the file sets none: the same result on every machine."""

_ZONED = re.compile(
    r"\b(timestamp|timestamp_ltz|localtimestamp|current_date|curdate|to_timestamp(_ltz)?|make_timestamp(_ltz)?"
    r"|to_unix_timestamp|unix_timestamp|from_unixtime|(to|from)_utc_timestamp|to_date|date_format|date_trunc"
    r"|date_part|extract|hour|minute|current_timezone)\b",
    re.I,
)
"""Types and functions of Spark SQL whose values depend on the zone, for some arguments."""
_TYPES = frozenset({"timestamp", "timestamptz"})


def depends_on_time_zone(statement: str, schema: Schema) -> bool:
    """Whether a statement mentions a type or a function that depends on the zone, or a column with a time.

    A text that Spark turns into a time, or the reverse, needs no such word, but a column of such a type.
    """
    text = without_texts_and_comments(statement)
    if _ZONED.search(text):
        return True
    names = (
        field.name
        for _, field in schema.walk()
        if isinstance(field.type, Primitive) and field.type.name in _TYPES
    )
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.I) for name in names)
