"""Which snapshots Iceberg's ``expire_snapshots`` would take by a table's own properties; pure.

The rule is the one of Iceberg's Java library (``RemoveSnapshots``; format specification, "Snapshot Retention
Policy"): a branch keeps its newest snapshots by number and by age, a tag its own, what no reference leads to
goes by age alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from icemigrate.model.retention import SNAPSHOT_AGE, SNAPSHOT_COUNT

_DEFAULT_AGE_MS = 5 * 86_400_000
_REF_AGE = "history.expire.max-ref-age-ms"
_MAIN = "main"


def expiring(metadata: Mapping[str, Any], now_ms: int) -> frozenset[int]:
    """Ids of the snapshots that would go.

    :param metadata: JSON of a metadata file.
    :param now_ms: the moment of the call, in milliseconds since 1970.
    """
    properties = metadata.get("properties") or {}
    snapshots = {s["snapshot-id"]: s for s in metadata.get("snapshots") or ()}
    age = _age_ms(metadata)
    count = int(properties.get(SNAPSHOT_COUNT, 1))
    kept: set[int] = set()
    led_to: set[int] = set()
    for name, ref in _refs(metadata).items():
        head = snapshots.get(ref["snapshot-id"])
        if head is None or not (name == _MAIN or _is_kept(ref, head, properties, now_ms)):
            continue
        if ref["type"] == "tag":
            kept.add(head["snapshot-id"])
            led_to.add(head["snapshot-id"])
            continue
        line = list(_ancestors(head, snapshots))
        led_to |= set(line)
        newest = ref.get("min-snapshots-to-keep", count)
        since = now_ms - ref.get("max-snapshot-age-ms", age)
        for at, id_ in enumerate(line):
            if at >= newest and snapshots[id_]["timestamp-ms"] < since:
                break
            kept.add(id_)
    kept |= {i for i, s in snapshots.items() if i not in led_to and s["timestamp-ms"] >= now_ms - age}
    return frozenset(snapshots.keys() - kept)


def kept_by_references(metadata: Mapping[str, Any], now_ms: int) -> tuple[int, tuple[str, ...]]:
    """How many more would go if there were only the main branch; the tags and branches that lead to them."""
    refs = _refs(metadata)
    main = {name: ref for name, ref in refs.items() if name == _MAIN}
    kept = expiring({**metadata, "refs": main}, now_ms) - expiring(metadata, now_ms)
    snapshots = {s["snapshot-id"]: s for s in metadata.get("snapshots") or ()}
    heads = {name: snapshots.get(ref["snapshot-id"]) for name, ref in refs.items() if name != _MAIN}
    names = (name for name, head in heads.items() if head and kept & set(_ancestors(head, snapshots)))
    return len(kept), tuple(sorted(names))


def kept_since(metadata: Mapping[str, Any], now_ms: int) -> datetime:
    """The moment after which the table keeps all snapshots, unless a branch says otherwise; from 1970 on."""
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


def _is_kept(
    ref: Mapping[str, Any], head: Mapping[str, Any], properties: Mapping[str, str], now_ms: int
) -> bool:
    age = ref.get("max-ref-age-ms", properties.get(_REF_AGE))
    return age is None or now_ms - int(head["timestamp-ms"]) <= int(age)


def _ancestors(head: Mapping[str, Any], snapshots: Mapping[int, Mapping[str, Any]]) -> Iterator[int]:
    snapshot: Mapping[str, Any] | None = head
    while snapshot is not None:
        yield snapshot["snapshot-id"]
        snapshot = snapshots.get(snapshot.get("parent-snapshot-id", -1))
