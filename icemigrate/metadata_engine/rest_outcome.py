"""Whether a commit was made, by the table as a REST server has it after a lost answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from icemigrate.iceberg.json_text import Json
from icemigrate.metadata_engine.apply_updates import apply_updates
from icemigrate.metadata_engine.equal_parts import reused_order_id, reused_schema_id, reused_spec_id
from icemigrate.metadata_engine.table_store import TableCommit

_EqualId: TypeAlias = Callable[[Sequence[Json], Json], "int | None"]
_Shows: TypeAlias = Callable[[Json, Json, Json], bool]
"""Whether current metadata (last) shows an update (first), by the metadata that is predicted (second)."""


def is_made(commit: TableCommit, now: Json) -> bool:
    """Whether the metadata shows a commit: its new snapshots, or else every part that it changes.

    Other parts are not compared, since another client may have changed them meanwhile.  Ids of schemas, specs
    and orders are the server's, so their content is compared.  An update of an unknown kind is never shown.

    :param now: the table's current metadata.
    """
    added = _added_snapshots(commit)
    if added:
        return added <= _snapshot_ids(now)
    if not {update["action"] for update in commit.updates} <= _SHOWS.keys():
        return False
    base = commit.base
    predicted = apply_updates(
        None if base is None else base.json,
        commit.updates,
        previous_location=None if base is None else base.location,
        now_ms=now["last-updated-ms"],
    )
    return all(_SHOWS[update["action"]](update, predicted, now) for update in commit.updates)


def adds_snapshot(commit: TableCommit) -> bool:
    """Whether a commit adds a snapshot, whose random id proves that it was made."""
    return bool(_added_snapshots(commit))


def _added_snapshots(commit: TableCommit) -> set[int]:
    return {u["snapshot"]["snapshot-id"] for u in commit.updates if u["action"] == "add-snapshot"}


def _has_part(parts: str, part: str, equal_id: _EqualId, update: Json, _: Json, now: Json) -> bool:
    return equal_id(now.get(parts, ()), update[part]) is not None


def _is_current(
    parts: str, key: str, current: str, equal_id: _EqualId, _: Json, predicted: Json, now: Json
) -> bool:
    wanted, actual = (
        next((part for part in json.get(parts, ()) if part[key] == json.get(current)), None)
        for json in (predicted, now)
    )
    return wanted is not None and actual is not None and equal_id([actual], wanted) is not None


def _properties(keys: str, update: Json, predicted: Json, now: Json) -> bool:
    return all(
        _within(predicted, "properties", key) == _within(now, "properties", key) for key in update[keys]
    )


def _ref(update: Json, predicted: Json, now: Json) -> bool:
    name = update["ref-name"]
    return bool(_within(predicted, "refs", name) == _within(now, "refs", name))


def _within(json: Json, part: str, key: str) -> Any:
    return (json.get(part) or {}).get(key)


def _snapshot_ids(json: Json) -> set[int]:
    return {snapshot["snapshot-id"] for snapshot in json.get("snapshots", ())}


def _schema_ids(json: Json) -> set[int]:
    return {schema["schema-id"] for schema in json.get("schemas", ())}


_SHOWS: dict[str, _Shows] = {
    "assign-uuid": lambda update, _, now: bool(now["table-uuid"] == update["uuid"]),
    "upgrade-format-version": lambda u, _, now: bool(now["format-version"] >= u["format-version"]),
    "set-location": lambda u, _, now: now["location"].rstrip("/") == u["location"].rstrip("/"),
    "add-schema": partial(_has_part, "schemas", "schema", reused_schema_id),
    "add-spec": partial(_has_part, "partition-specs", "spec", reused_spec_id),
    "add-sort-order": partial(_has_part, "sort-orders", "sort-order", reused_order_id),
    "set-current-schema": partial(_is_current, "schemas", "schema-id", "current-schema-id", reused_schema_id),
    "set-default-spec": partial(_is_current, "partition-specs", "spec-id", "default-spec-id", reused_spec_id),
    "set-default-sort-order": partial(
        _is_current, "sort-orders", "order-id", "default-sort-order-id", reused_order_id
    ),
    "set-properties": partial(_properties, "updates"),
    "remove-properties": partial(_properties, "removals"),
    "set-snapshot-ref": _ref,
    "remove-snapshot-ref": _ref,
    "remove-snapshots": lambda u, _, now: not set(u["snapshot-ids"]) & _snapshot_ids(now),
    "remove-schemas": lambda u, _, now: not set(u["schema-ids"]) & _schema_ids(now),
}
