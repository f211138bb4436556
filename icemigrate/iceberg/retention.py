"""Retention of rows and snapshots: its declaration, its properties, and the snapshots that Iceberg would
expire.

Snapshots use Iceberg's own properties, so every engine's ``expire_snapshots`` follows them.  Rows have no
such property in Iceberg; theirs are icemigrate's, and ``maintain`` applies them.

The rule is that of Iceberg's Java library (``RemoveSnapshots``; format specification, "Snapshot Retention
Policy"): a branch keeps its newest snapshots by number and by age, a tag its own; snapshots without a
reference expire by age.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, TypeAlias

from icemigrate.iceberg.names import BadName, FieldPath, format_path, parse_path
from icemigrate.iceberg.table_properties import whole_number
from icemigrate.redaction import MASK, holds_secret

SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
SNAPSHOT_COUNT = "history.expire.min-snapshots-to-keep"
ROW_COLUMN = "icemigrate.retention.rows.column"
"""Path of the column whose value is a row's age, as in a migration file."""
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
_DURATION = re.compile(r"\s*([0-9]+)\s*(ms|[wdhms])\s*\Z")


class BadDuration(ValueError):
    """A text that is not a duration; the message shows a valid one."""


def parse_duration(text: str) -> int:
    """Milliseconds of ``2w``, ``30d``, ``12h``, ``90m`` (also ``s`` and ``ms``).

    :raises BadDuration: anything else.
    """
    match = _DURATION.match(text)
    if not match:
        raise BadDuration(
            f"`{text}` is not a duration: write a number and a unit, such as `30d`, `12h`, `90m` or `2w`"
        )
    return int(match[1]) * _UNITS[match[2]]


def parse_seconds(text: str) -> float:
    """Seconds of a time to wait: a number (``30``, ``0.5``), or a duration with its unit (``5s``, ``2m``).

    :raises BadDuration: anything else, or a negative or endless time.
    """
    try:
        seconds = float(text)
    except ValueError:
        match = _DURATION.match(text)
        seconds = float(match[1]) * _UNITS[match[2]] / 1000 if match else -1.0
    if not 0 <= seconds < float("inf"):
        raise BadDuration(
            f"`{text}` is not a time to wait: write seconds, such as `30`, or a number and a unit, such as "
            "`5s` or `2m`"
        )
    return seconds


MINUTE_MS = parse_duration("1m")
LEAST_ORPHAN_AGE = parse_duration("3d")
"""Milliseconds. Younger files may belong to a running write; Iceberg's own default is the same."""


def format_duration(ms: int) -> str:
    """Milliseconds in the largest unit, up to days, with a whole number; :func:`parse_duration` reads it
    back.
    """
    unit = next(u for u in _PRINTED if ms % _UNITS[u] == 0)
    return f"{ms // _UNITS[unit]}{unit}"


def to_properties(retention: Mapping[str, Any] | None) -> dict[str, str | None]:
    """The properties of a declared retention; ``None`` removes a property.

    :param retention: as in a migration file: ``{"snapshots": {"max_age", "keep_at_least"}, "rows": {"column",
        "max_age"}}``.  A missing key leaves its properties unchanged, one that is ``None`` removes them.
    :raises BadDuration: an age is not a duration.
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
    """The retention in properties, in declared form; empty without any.

    A value that is not a number (set by hand) is left out: it is an ordinary property then.
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


@lru_cache(maxsize=256)
def property_text(key: str, value: str) -> str:
    """A property's value for people: ``***`` where its name is one of a credential; beside a number of
    milliseconds the same in a larger unit."""
    if holds_secret(key, value):
        return MASK
    number = whole_number(value)
    if not key.endswith("-ms") or not number:
        return value
    text = format_duration(number)
    return value if text == f"{value}ms" else f"{value} ({text})"


def _number(properties: Mapping[str, str], key: str) -> int | None:
    return whole_number(properties.get(key))


def row_column(properties: Mapping[str, str]) -> FieldPath | None:
    """The column that rows are retained by; ``None`` without one, or where its path cannot be read."""
    try:
        return parse_path(properties[ROW_COLUMN]) if ROW_COLUMN in properties else None
    except BadName:
        return None


def row_column_after_rename(properties: Mapping[str, str], old: FieldPath, new: FieldPath) -> dict[str, str]:
    """The properties after a rename of the retained column or of one of its parents.

    Iceberg does not know this property, so a rename in the table alone does not change it: the target of a
    rename must be passed through this function.
    """
    column = row_column(properties)
    if column is None or column[: len(old)] != old:
        return dict(properties)
    return {**properties, ROW_COLUMN: format_path((*new, *column[len(old) :]))}


_DEFAULT_AGE_MS = 5 * 86_400_000
_REF_AGE = "history.expire.max-ref-age-ms"
_MAIN = "main"


def snapshot_ids_to_expire(metadata: Mapping[str, Any], now_ms: int) -> frozenset[int]:
    """Ids of the snapshots that would expire.

    :param metadata: JSON of a metadata file.
    :param now_ms: the time of the expiry, in milliseconds since 1970.
    """
    properties = metadata.get("properties") or {}
    snapshots = {s["snapshot-id"]: s for s in metadata.get("snapshots") or ()}
    age = _age_ms(metadata)
    count = int(properties.get(SNAPSHOT_COUNT, 1))
    kept: set[int] = set()
    led_to: set[int] = set()
    for name, ref in _refs(metadata).items():
        head = snapshots.get(ref["snapshot-id"])
        if head is None or not (name == _MAIN or _is_ref_retained(ref, head, properties, now_ms)):
            continue
        if ref["type"] == "tag":
            kept.add(head["snapshot-id"])
            led_to.add(head["snapshot-id"])
            continue
        line = list(_line(snapshots, head["snapshot-id"]))
        led_to |= set(line)
        newest = ref.get("min-snapshots-to-keep", count)
        since = now_ms - ref.get("max-snapshot-age-ms", age)
        for at, id_ in enumerate(line):
            if at >= newest and snapshots[id_]["timestamp-ms"] < since:
                break
            kept.add(id_)
    kept |= {i for i, s in snapshots.items() if i not in led_to and s["timestamp-ms"] >= now_ms - age}
    return frozenset(snapshots.keys() - kept)


def expired_references(metadata: Mapping[str, Any], now_ms: int) -> tuple[str, ...]:
    """The tags and branches whose own age limit is over, sorted; main has none."""
    properties = metadata.get("properties") or {}
    snapshots = {s["snapshot-id"]: s for s in metadata.get("snapshots") or ()}
    return tuple(
        sorted(
            name
            for name, ref in _refs(metadata).items()
            if name != _MAIN
            and (head := snapshots.get(ref["snapshot-id"])) is not None
            and not _is_ref_retained(ref, head, properties, now_ms)
        )
    )


def retained_by_references(metadata: Mapping[str, Any], now_ms: int) -> tuple[int, tuple[str, ...]]:
    """The number of snapshots that only other references than main retain, and these tags and branches."""
    refs = _refs(metadata)
    main = {name: ref for name, ref in refs.items() if name == _MAIN}
    kept = snapshot_ids_to_expire({**metadata, "refs": main}, now_ms) - snapshot_ids_to_expire(
        metadata, now_ms
    )
    snapshots = {s["snapshot-id"]: s for s in metadata.get("snapshots") or ()}
    heads = {name: snapshots.get(ref["snapshot-id"]) for name, ref in refs.items() if name != _MAIN}
    names = (
        name for name, head in heads.items() if head and kept & set(_line(snapshots, head["snapshot-id"]))
    )
    return len(kept), tuple(sorted(names))


def retained_since(metadata: Mapping[str, Any], now_ms: int) -> datetime:
    """The time since which the table keeps all snapshots, unless a branch has its own limit; from 1970 on."""
    since = timedelta(milliseconds=max(0, now_ms - _age_ms(metadata)))
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + since


def _age_ms(metadata: Mapping[str, Any]) -> int:
    return int((metadata.get("properties") or {}).get(SNAPSHOT_AGE, _DEFAULT_AGE_MS))


def _refs(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    refs: Mapping[str, Any] = metadata.get("refs") or {}
    current = metadata.get("current-snapshot-id")
    if _MAIN in refs or current is None or current == -1:
        return refs
    return {**refs, _MAIN: {"snapshot-id": current, "type": "branch"}}


def _is_ref_retained(
    ref: Mapping[str, Any], head: Mapping[str, Any], properties: Mapping[str, str], now_ms: int
) -> bool:
    age = ref.get("max-ref-age-ms", properties.get(_REF_AGE))
    return age is None or now_ms - int(head["timestamp-ms"]) <= int(age)


def ancestor_ids(metadata: Mapping[str, Any], snapshot_id: int | None) -> Iterator[int]:
    """The ids of a snapshot and of the snapshots that it was made from, as far as metadata has them."""
    return _line({one["snapshot-id"]: one for one in metadata.get("snapshots") or ()}, snapshot_id)


def _line(snapshots: Mapping[int, Mapping[str, Any]], snapshot_id: int | None) -> Iterator[int]:
    seen = set[int]()
    while snapshot_id in snapshots and snapshot_id not in seen:
        assert snapshot_id is not None
        seen.add(snapshot_id)
        yield snapshot_id
        snapshot_id = snapshots[snapshot_id].get("parent-snapshot-id")
