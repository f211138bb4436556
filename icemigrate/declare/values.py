"""Small values out of nodes that the schema was found to fit."""

from __future__ import annotations

import json
from datetime import timedelta

from icemigrate.declare.migration import (
    UNSET,
    Default,
    Reference,
    Retention,
    RowRetention,
    SnapshotRetention,
    Unset,
)
from icemigrate.declare.nodes import Mapping, Node, Scalar, Sequence, to_data

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def mapping(node: Node | None) -> Mapping:
    """The node, which the schema knows to be a mapping."""
    assert isinstance(node, Mapping)
    return node


def items(node: Node | None) -> tuple[Node, ...]:
    """The items of a list, or none where the key is absent."""
    if node is None:
        return ()
    assert isinstance(node, Sequence)
    return node.items


def entries(node: Node | None) -> tuple[tuple[Scalar, Node], ...]:
    """The entries of a mapping, or none where the key is absent."""
    return () if node is None else mapping(node).entries


def text(node: Node | None) -> str:
    """A text as written."""
    assert isinstance(node, Scalar)
    return node.text


def optional_text(node: Node | None) -> str | Unset:
    """A text, or that there is none."""
    return UNSET if node is None else text(node)


def nullable_text(node: Node | None) -> str | None | Unset:
    """A text, ``null``, or that there is nothing."""
    return None if is_null(node) else optional_text(node)


def is_null(node: Node | None) -> bool:
    """Whether ``null`` was written."""
    return isinstance(node, Scalar) and node.value is None


def flag(node: Node | None) -> bool:
    """A boolean that is false by default."""
    return isinstance(node, Scalar) and node.value is True


def optional_flag(node: Node | None) -> bool | Unset:
    """A boolean, or that there is none."""
    return UNSET if node is None else flag(node)


def whole_number(node: Node | None) -> int:
    """An integer; ``2.0`` is one, as in JSON Schema."""
    assert isinstance(node, Scalar)
    assert isinstance(node.value, (int, float))
    return int(node.value)


def property_text(node: Node) -> str | None:
    """A property's value. Properties are strings: what was written counts, and ``True`` is ``true``."""
    assert isinstance(node, Scalar)
    if node.value is None:
        return None
    return str(node.value).lower() if isinstance(node.value, bool) else node.text


def properties(node: Node | None) -> dict[str, str | None]:
    """A mapping of properties; ``None`` is one to be removed."""
    return {key.text: property_text(value) for key, value in entries(node)}


def default(node: Node) -> Default:
    """A column's default."""
    if isinstance(node, Scalar):
        return Default(node.value, node.text, node.value is None, node.place)
    data = to_data(node)
    return Default(data, json.dumps(data, sort_keys=True, ensure_ascii=False), False, node.place)


def duration(node: Node | None) -> timedelta:
    """``30d``, ``12h``; the schema bounds the digits so that it always fits."""
    written = text(node).strip()
    return timedelta(**{_UNITS[written[-1]]: int(written[:-1])})


def retention(node: Node) -> Retention:
    """``{snapshots: {…}, rows: {…}}``."""
    snapshots, rows = mapping(node).get("snapshots"), mapping(node).get("rows")
    return Retention(
        snapshots=None if is_null(snapshots) else _snapshots(snapshots),
        rows=None if is_null(rows) else _rows(rows),
    )


def _snapshots(node: Node | None) -> SnapshotRetention | Unset:
    if node is None:
        return UNSET
    max_age, keep = mapping(node).get("max_age"), mapping(node).get("keep_at_least")
    return SnapshotRetention(
        max_age=UNSET if max_age is None else None if is_null(max_age) else duration(max_age),
        keep_at_least=UNSET if keep is None else None if is_null(keep) else whole_number(keep),
    )


def _rows(node: Node | None) -> RowRetention | Unset:
    if node is None:
        return UNSET
    return RowRetention(text(mapping(node).get("column")), duration(mapping(node).get("max_age")))


def reference(node: Node) -> Reference | None:
    """A branch or a tag; ``None`` is one to be removed."""
    if is_null(node):
        return None
    inner = mapping(node).get("retention")
    if inner is None:
        return Reference()
    max_age = mapping(inner).get("max_age")
    return Reference(
        UNSET if max_age is None else duration(max_age), _snapshots(mapping(inner).get("snapshots"))
    )
