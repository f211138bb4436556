"""Small values read from nodes that match the schema."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone

from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence, to_data
from icemigrate.files.read.migration_file import (
    UNSET,
    DefaultEntry,
    KeepViewEntry,
    Reference,
    Retention,
    RowRetention,
    SnapshotRetention,
    Unset,
)
from icemigrate.iceberg.snapshot_pins import PIN_KEYS, SnapshotPin

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_NOT_IN_JAVA = frozenset({"Factory", "ROC", "localtime"})
"""Names of the database of time zones that Java's ``ZoneId`` refuses."""


def as_mapping(node: YamlNode | None) -> YamlMapping:
    assert isinstance(node, YamlMapping)
    return node


def list_items(node: YamlNode | None) -> tuple[YamlNode, ...]:
    """The items of a list, or none where the key is absent."""
    if node is None:
        return ()
    assert isinstance(node, YamlSequence)
    return node.items


def mapping_entries(node: YamlNode | None) -> tuple[tuple[YamlScalar, YamlNode], ...]:
    """The entries of a mapping, or none where the key is absent."""
    return () if node is None else as_mapping(node).entries


def scalar_text(node: YamlNode | None) -> str:
    """A text as written."""
    assert isinstance(node, YamlScalar)
    return node.text


def optional_text(node: YamlNode | None) -> str | Unset:
    """A text, or ``UNSET`` where the key is absent."""
    return UNSET if node is None else scalar_text(node)


def nullable_text(node: YamlNode | None) -> str | None | Unset:
    """A text, ``None`` for ``null``, or ``UNSET`` where the key is absent."""
    return None if is_null(node) else optional_text(node)


def is_null(node: YamlNode | None) -> bool:
    """Whether ``null`` was written."""
    return isinstance(node, YamlScalar) and node.value is None


def read_flag(node: YamlNode | None) -> bool:
    """A boolean that is false by default."""
    return isinstance(node, YamlScalar) and node.value is True


def optional_flag(node: YamlNode | None) -> bool | Unset:
    """A boolean, or ``UNSET`` where the key is absent."""
    return UNSET if node is None else read_flag(node)


def whole_number(node: YamlNode | None) -> int:
    """An integer; ``2.0`` is one, as in JSON Schema."""
    assert isinstance(node, YamlScalar)
    assert isinstance(node.value, (int, float))
    return int(node.value)


def property_text(node: YamlNode) -> str | None:
    """A property's value as a string: the characters as written, and ``true`` for ``True``."""
    assert isinstance(node, YamlScalar)
    if node.value is None:
        return None
    return str(node.value).lower() if isinstance(node.value, bool) else node.text


def read_properties(node: YamlNode | None) -> dict[str, str | None]:
    """A mapping of properties; ``None`` is one to be removed."""
    return {key.text: property_text(value) for key, value in mapping_entries(node)}


def read_default(node: YamlNode) -> DefaultEntry:
    """A column's default."""
    if isinstance(node, YamlScalar):
        return DefaultEntry(node.value, node.text, node.value is None, node.place)
    data = to_data(node)
    return DefaultEntry(data, json.dumps(data, sort_keys=True, ensure_ascii=False), False, node.place)


def read_duration(node: YamlNode | None) -> timedelta:
    """``30d``, ``12h``; the schema limits the digits, so the value always fits."""
    written = scalar_text(node).strip()
    return timedelta(**{_UNITS[written[-1]]: int(written[:-1])})


def read_retention(node: YamlNode) -> Retention:
    """``{snapshots: {…}, rows: {…}}``."""
    snapshots, rows = as_mapping(node).get("snapshots"), as_mapping(node).get("rows")
    return Retention(
        snapshots=None if is_null(snapshots) else _snapshots(snapshots),
        rows=None if is_null(rows) else _rows(rows),
    )


def read_keep_view(node: YamlNode | None) -> KeepViewEntry | None | Unset:
    """``30d``, or ``{name: …, max_age: 30d}``; ``None`` drops the views of the table."""
    if node is None:
        return UNSET
    if is_null(node):
        return None
    if isinstance(node, YamlScalar):
        return KeepViewEntry(read_duration(node))
    named = as_mapping(node)
    return KeepViewEntry(read_duration(named.get("max_age")), optional_text(named.get("name")))


def _snapshots(node: YamlNode | None) -> SnapshotRetention | Unset:
    if node is None:
        return UNSET
    max_age, keep = as_mapping(node).get("max_age"), as_mapping(node).get("keep_at_least")
    return SnapshotRetention(
        max_age=UNSET if max_age is None else None if is_null(max_age) else read_duration(max_age),
        keep_at_least=UNSET if keep is None else None if is_null(keep) else whole_number(keep),
    )


def _rows(node: YamlNode | None) -> RowRetention | Unset:
    if node is None:
        return UNSET
    return RowRetention(
        scalar_text(as_mapping(node).get("column")), read_duration(as_mapping(node).get("max_age"))
    )


def read_reference(node: YamlNode) -> Reference | None:
    """A branch or a tag; ``None`` is one to be removed."""
    if is_null(node):
        return None
    pin, inner = _pin(as_mapping(node)), as_mapping(node).get("retention")
    if inner is None:
        return Reference(pin=pin)
    max_age = as_mapping(inner).get("max_age")
    return Reference(
        UNSET if max_age is None else read_duration(max_age),
        _snapshots(as_mapping(inner).get("snapshots")),
        pin,
    )


def _pin(node: YamlMapping) -> SnapshotPin | None:
    """The declared snapshot, with a time in UTC."""
    for key in PIN_KEYS:
        value = node.get(key)
        if value is not None:
            text = scalar_text(value).strip()
            return SnapshotPin(key, (utc_time(text) or text) if key == "as_of" else text)
    return None


def utc_time(text: str) -> str | None:
    """A time with a zone, in UTC; ``None`` where it is no time of the calendar."""
    try:
        return datetime.fromisoformat(_as_python_writes(text)).astimezone(timezone.utc).isoformat()
    except (ValueError, OverflowError):
        return None


def _as_python_writes(text: str) -> str:
    """A time in the only form that Python 3.10 reads: no `Z`, and no fraction or 6 digits of it."""
    text = re.sub(r"[Zz]$", "+00:00", text)
    return re.sub(r"\.([0-9]+)", lambda fraction: f".{fraction[1]:0<6.6}", text)


def time_zone_names() -> frozenset[str]:
    """The names of time zones that Java knows too; none without a database of zones."""
    from zoneinfo import available_timezones

    return frozenset(available_timezones()) - _NOT_IN_JAVA
