"""Table metadata as JSON without what differs between any two commits: uuids, times, file names and ids of
snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

_OF_ONE_RUN = ("engine-", "spark.", "iceberg-version", "app-id", "app-name", "icemigrate.run")
_DEFAULTS_OMITTED = {"geometry(OGC:CRS84)": "geometry", "geography(OGC:CRS84, spherical)": "geography"}
_LEFT_OUT = ("table-uuid", "location", "last-updated-ms", "metadata-log")


def comparable_metadata(json: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata with snapshots numbered in their order, and properties in the order of their names."""
    numbers: dict[Any, Any] = {s["snapshot-id"]: n for n, s in enumerate(json.get("snapshots") or (), 1)}
    numbers |= {-1: -1, None: None}
    found = {key: value for key, value in json.items() if key not in _LEFT_OUT}
    found["snapshots"] = [_snapshot(s, numbers) for s in json.get("snapshots") or ()]
    # Iceberg's library moves main once more where it sets limits too.
    log = [numbers[entry["snapshot-id"]] for entry in json.get("snapshot-log") or ()]
    found["snapshot-log"] = [number for number, _ in groupby(log)]
    found["current-snapshot-id"] = numbers[json.get("current-snapshot-id")]
    found["refs"] = {
        name: {**ref, "snapshot-id": numbers[ref["snapshot-id"]], "max-ref-age-ms": _age(ref)}
        for name, ref in sorted(json.get("refs", {}).items())
    }
    found["properties"] = {k: v for k, v in sorted(json["properties"].items()) if k != "icemigrate.commit"}
    return found


def _age(ref: Mapping[str, Any]) -> Any:
    """An age limit, where it does not depend on the clock."""
    age = ref.get("max-ref-age-ms")
    return "limited" if age is not None and age < 2**62 else age


def _snapshot(json: Mapping[str, Any], numbers: Mapping[Any, Any]) -> dict[str, Any]:
    summary = {k: v for k, v in json["summary"].items() if not k.startswith(_OF_ONE_RUN)}
    left_out = ("manifest-list", "timestamp-ms")
    return {
        **{key: value for key, value in json.items() if key not in left_out},
        "snapshot-id": numbers[json["snapshot-id"]],
        "parent-snapshot-id": numbers.get(json.get("parent-snapshot-id")),
        "summary": summary,
    }


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two JSON values differ, with both values."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        keys = sorted({*one, *other}, key=str)
        return [d for k in keys for d in differences(one.get(k), other.get(k), f"{path}.{k}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            d
            for n, pair in enumerate(zip(one, other, strict=True))
            for d in differences(*pair, f"{path}[{n}]")
        ]
    if one in (_DEFAULTS_OMITTED.get(str(other)), other):
        return []
    return [f"{path}: {one!r} and {other!r}"]
