"""Retention: how it is declared, and the table properties it is kept in.

Snapshots use Iceberg's own properties, so every engine's ``expire_snapshots`` follows them.  Rows
have no such property in Iceberg; theirs are icemigrate's, and ``maintain`` carries them out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeAlias

from icemigrate.model.names import BadName, Path, format_path, parse_path
from icemigrate.redaction import MASK, holds_secret

SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
SNAPSHOT_COUNT = "history.expire.min-snapshots-to-keep"
ROW_COLUMN = "icemigrate.retention.rows.column"
"""Path of the column whose value is a row's age, as it would stand in a migration file."""
ROW_AGE = "icemigrate.retention.rows.max-age-ms"
PROPERTIES = (SNAPSHOT_AGE, SNAPSHOT_COUNT, ROW_COLUMN, ROW_AGE)

Age: TypeAlias = "str | timedelta"
"""A duration as text (``30d``) or as a value."""

_UNITS = {
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "ms": 1,
}
_PRINTED = ("d", "h", "m", "s", "ms")
_DURATION = re.compile(r"\s*(\d+)\s*(ms|[wdhms])\s*\Z")


class BadDuration(ValueError):
    """A text that is no duration; the message says what one looks like."""


def parse_duration(text: str) -> int:
    """Milliseconds of ``2w``, ``30d``, ``12h``, ``90m`` (also ``s`` and ``ms``).

    :raises BadDuration: anything else.
    """
    match = _DURATION.match(text)
    if not match:
        raise BadDuration(
            f"`{text}` is no duration: write a number and a unit, like `30d`, `12h`, `90m` or `2w`"
        )
    return int(match[1]) * _UNITS[match[2]]


MINUTE_MS = parse_duration("1m")
LEAST_ORPHAN_AGE = parse_duration("3d")
"""Milliseconds.  Younger files may belong to a write that goes on; Iceberg's own default is the same."""


def format_duration(ms: int) -> str:
    """Milliseconds in the largest unit, up to days, that gives a whole number.

    :func:`parse_duration` reads it back.
    """
    unit = next(u for u in _PRINTED if ms % _UNITS[u] == 0)
    return f"{ms // _UNITS[unit]}{unit}"


def to_properties(retention: Mapping[str, Any] | None) -> dict[str, str | None]:
    """The properties that say a declared retention; ``None`` is a property to be taken away.

    :param retention: as in a migration file: ``{"snapshots": {"max_age", "keep_at_least"}, "rows":
        {"column", "max_age"}}``.  A key that is missing leaves its properties alone, one that is ``None``
        takes them away.
    :raises BadDuration: an age that is no duration.
    """
    if retention is None:
        return dict.fromkeys(PROPERTIES)
    out: dict[str, str | None] = {}
    if "snapshots" in retention:
        out |= _snapshots(retention["snapshots"])
    if "rows" in retention:
        rows = retention["rows"]
        out[ROW_COLUMN] = None if rows is None else rows["column"]
        out[ROW_AGE] = None if rows is None else _age(rows["max_age"])
    return out


def _snapshots(snapshots: Mapping[str, Any] | None) -> dict[str, str | None]:
    if snapshots is None:
        return {SNAPSHOT_AGE: None, SNAPSHOT_COUNT: None}
    out: dict[str, str | None] = {}
    if "max_age" in snapshots:
        out[SNAPSHOT_AGE] = _age(snapshots["max_age"])
    if "keep_at_least" in snapshots:
        count = snapshots["keep_at_least"]
        out[SNAPSHOT_COUNT] = None if count is None else str(count)
    return out


def _age(age: Age | None) -> str | None:
    if age is None:
        return None
    return str(age // timedelta(milliseconds=1) if isinstance(age, timedelta) else parse_duration(age))


def from_properties(properties: Mapping[str, str]) -> dict[str, dict[str, str | int]]:
    """The retention that properties say, as it would be declared; empty where they say none.

    A value that is no number (set by hand) is left out: it is a property like any other then.
    """
    snapshots: dict[str, str | int] = {}
    if (age := _number(properties, SNAPSHOT_AGE)) is not None:
        snapshots["max_age"] = format_duration(age)
    if (count := _number(properties, SNAPSHOT_COUNT)) is not None:
        snapshots["keep_at_least"] = count
    out = {"snapshots": snapshots} if snapshots else {}
    row_age = _number(properties, ROW_AGE)
    if row_age is not None and ROW_COLUMN in properties:
        out["rows"] = {"column": properties[ROW_COLUMN], "max_age": format_duration(row_age)}
    return out


def property_text(key: str, value: str) -> str:
    """A property's value for people: ``***`` where its name is one of a credential; beside a number of
    milliseconds the same in a larger unit."""
    if holds_secret(key, value):
        return MASK
    is_number = value.isascii() and value.isdigit()
    if not key.endswith("-ms") or not is_number or int(value) == 0:
        return value
    said = format_duration(int(value))
    return value if said == f"{value}ms" else f"{value} ({said})"


def _number(properties: Mapping[str, str], key: str) -> int | None:
    text = properties.get(key, "")
    return int(text) if text.isascii() and text.isdigit() else None


def row_column(properties: Mapping[str, str]) -> Path | None:
    """The column that rows are retained by; ``None`` where there is none, or its path cannot be read."""
    try:
        return parse_path(properties[ROW_COLUMN]) if ROW_COLUMN in properties else None
    except BadName:
        return None


def after_rename(properties: Mapping[str, str], old: Path, new: Path) -> dict[str, str]:
    """The properties with the retained column following a rename of it or of a field above it.

    Iceberg does not know this property, so a rename in the table alone leaves it behind: what is wanted
    after a rename must be passed through here.
    """
    column = row_column(properties)
    if column is None or column[: len(old)] != old:
        return dict(properties)
    return {**properties, ROW_COLUMN: format_path((*new, *column[len(old) :]))}
