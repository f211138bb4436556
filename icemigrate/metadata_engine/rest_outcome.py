"""Whether a commit was made, by the table as a REST server has it after a lost answer."""

from __future__ import annotations

from typing import Any

from icemigrate.metadata_engine.apply_updates import apply_updates
from icemigrate.metadata_engine.equal_parts import reused_order_id, reused_schema_id, reused_spec_id
from icemigrate.metadata_engine.table_store import Json, TableCommit

_CURRENT = {
    "set-current-schema": ("schemas", "schema-id", "current-schema-id", reused_schema_id),
    "set-default-spec": ("partition-specs", "spec-id", "default-spec-id", reused_spec_id),
    "set-default-sort-order": ("sort-orders", "order-id", "default-sort-order-id", reused_order_id),
}


def is_made(commit: TableCommit, now: Json) -> bool:
    """Whether the metadata shows a commit: its new snapshots, or else every part that it changes.

    Other parts are not compared, since another client may have changed them meanwhile.  Ids of schemas, specs
    and orders are the server's, so their content is compared.

    :param now: the table's current metadata.
    """
    added = [u["snapshot"]["snapshot-id"] for u in commit.updates if u["action"] == "add-snapshot"]
    if added:
        there = {snapshot["snapshot-id"] for snapshot in now.get("snapshots", ())}
        return there.issuperset(added)
    base = commit.base
    predicted = apply_updates(
        None if base is None else base.json,
        commit.updates,
        previous_location=None if base is None else base.location,
        now_ms=now["last-updated-ms"],
    )
    return all(_shows(update, predicted, now) for update in commit.updates)


def _shows(update: Json, predicted: Json, now: Json) -> bool:
    action = update["action"]
    if action in _CURRENT:
        parts, key, current, equal_id = _CURRENT[action]
        wanted, actual = (_current(metadata, parts, key, current) for metadata in (predicted, now))
        return wanted is not None and actual is not None and equal_id([actual], wanted) is not None
    if action in ("set-properties", "remove-properties"):
        keys = update["updates"] if action == "set-properties" else update["removals"]
        return all(_within(predicted, "properties", key) == _within(now, "properties", key) for key in keys)
    if action in ("set-snapshot-ref", "remove-snapshot-ref"):
        name = update["ref-name"]
        return bool(_within(predicted, "refs", name) == _within(now, "refs", name))
    if action == "remove-snapshots":
        return not set(update["snapshot-ids"]) & {s["snapshot-id"] for s in now.get("snapshots", ())}
    if action == "upgrade-format-version":
        return bool(now["format-version"] >= update["format-version"])
    if action == "assign-uuid":
        return bool(now["table-uuid"] == update["uuid"])
    if action == "set-location":
        return str(now["location"]).rstrip("/") == str(update["location"]).rstrip("/")
    return True


def _current(metadata: Json, parts: str, key: str, current: str) -> Json | None:
    return next((part for part in metadata.get(parts, ()) if part[key] == metadata.get(current)), None)


def _within(metadata: Json, part: str, key: str) -> Any:
    return (metadata.get(part) or {}).get(key)
