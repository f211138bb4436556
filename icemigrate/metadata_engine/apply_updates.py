"""Updates of Iceberg's REST protocol, applied to the JSON of table metadata.

The result is what ``TableMetadata.Builder`` of Iceberg's Java library makes of the same updates: the same
ids, logs and sequence numbers.  The JSON is edited, not built again, so that keys which icemigrate does not
know survive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.table import MAIN_BRANCH
from icemigrate.iceberg.table_properties import whole_number
from icemigrate.metadata_engine.equal_parts import (
    field_ids,
    highest_field_id,
    reused_order_id,
    reused_schema_id,
    reused_spec_id,
)
from icemigrate.metadata_engine.table_store import CommitRefused

LAST_ADDED = -1
"""In an update: the schema, spec or order that an update before it added."""

_FIRST_PARTITION_ID = 1000
_NO_SNAPSHOT = -1
_DEFAULT_PREVIOUS_FILES = 100
_LISTS = (
    "schemas",
    "partition-specs",
    "sort-orders",
    "snapshots",
    "statistics",
    "partition-statistics",
    "snapshot-log",
    "metadata-log",
)


class InvalidUpdate(CommitRefused):
    """An update that does not fit the metadata; nothing was written."""


def apply_updates(
    json: Json | None, updates: Sequence[Json], *, previous_location: str | None, now_ms: int
) -> dict[str, Any]:
    """The metadata after the updates.

    :param json: the metadata before them; ``None`` where they create a table.
    :param previous_location: of the metadata file before them, for the metadata log.
    :param now_ms: milliseconds since the epoch.
    :raises InvalidUpdate: the metadata has no part that an update names, or the result is not valid.
    """
    edit = _Edit(_blank() if json is None else complete_metadata(json), now_ms)
    for update in updates:
        handle = _HANDLERS.get(update["action"])
        if handle is None:
            raise InvalidUpdate(f"the update `{update['action']}` is not supported")
        handle(edit, update)
    return edit.finished(json, previous_location)


class _Edit:
    """Metadata that is being changed."""

    def __init__(self, metadata: dict[str, Any], now_ms: int) -> None:
        self.metadata = metadata
        self.now_ms = now_ms
        self.added: dict[str, int] = {}
        self.new_snapshots: dict[int, Json] = {}
        self.removes_snapshots = False

    @property
    def version(self) -> int:
        return int(self.metadata["format-version"])

    def last_added(self, kind: str, number: int) -> int:
        """The id that an update names."""
        if number != LAST_ADDED:
            return number
        if kind not in self.added:
            raise InvalidUpdate(f"an update refers to the last added {kind}, and none was added")
        return self.added[kind]

    def finished(self, before: Json | None, previous_location: str | None) -> dict[str, Any]:
        """The checked result, with its logs."""
        metadata = self.metadata
        _require_sources(metadata)
        self._correct_snapshot_log()
        if before is not None and previous_location is not None:
            entry = {"timestamp-ms": before["last-updated-ms"], "metadata-file": previous_location}
            limit = whole_number(metadata["properties"].get("write.metadata.previous-versions-max"))
            keep = max(1, _DEFAULT_PREVIOUS_FILES if limit is None else limit) - 1
            log = metadata["metadata-log"]
            metadata["metadata-log"] = [*log[max(0, len(log) - keep) :], entry]
        metadata["last-updated-ms"] = self.now_ms
        if self.version == 1:
            schema = find_by_id(metadata["schemas"], "schema-id", metadata["current-schema-id"])
            metadata["schema"] = dict(schema)
            spec = find_by_id(metadata["partition-specs"], "spec-id", metadata["default-spec-id"])
            metadata["partition-spec"] = spec["fields"]
        return metadata

    def _correct_snapshot_log(self) -> None:
        """Remove entries of snapshots that main had only within this commit, or before an expired one."""
        metadata, log = self.metadata, list[Json]()
        there = {snapshot["snapshot-id"] for snapshot in metadata["snapshots"]}
        current = metadata["current-snapshot-id"]
        for entry in metadata["snapshot-log"]:
            number = entry["snapshot-id"]
            if number not in there:
                if self.removes_snapshots:
                    log.clear()
                    continue
            elif number in self.new_snapshots and number != current:
                continue
            log.append(entry)
        metadata["snapshot-log"] = log


def _blank() -> dict[str, Any]:
    return {
        "format-version": 2,
        "table-uuid": str(uuid4()),
        "location": None,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": 0,
        "current-schema-id": -1,
        "schemas": [],
        "default-spec-id": -1,
        "partition-specs": [],
        "last-partition-id": _FIRST_PARTITION_ID - 1,
        "default-sort-order-id": -1,
        "sort-orders": [],
        "properties": {},
        "current-snapshot-id": _NO_SNAPSHOT,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }


def complete_metadata(json: Json) -> dict[str, Any]:
    """A copy whose lists may be changed, with the parts that format version 1 may omit."""
    metadata = dict(json)
    if not metadata.get("schemas"):
        schema = {"schema-id": 0, **metadata["schema"]}
        metadata |= {"schemas": [schema], "current-schema-id": schema["schema-id"]}
    if not metadata.get("partition-specs"):
        metadata |= {"partition-specs": [_first_spec(metadata)], "default-spec-id": 0}
    if metadata.get("last-partition-id") is None:
        ids = [f["field-id"] for spec in metadata["partition-specs"] for f in spec["fields"]]
        metadata["last-partition-id"] = max(ids, default=_FIRST_PARTITION_ID - 1)
    if not metadata.get("sort-orders"):
        metadata |= {"sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0}
    if metadata.get("current-snapshot-id") in (None, _NO_SNAPSHOT):
        metadata["current-snapshot-id"] = None if metadata["format-version"] >= 3 else _NO_SNAPSHOT
    elif not metadata.get("refs"):
        main = {"snapshot-id": metadata["current-snapshot-id"], "type": "branch"}
        metadata["refs"] = {MAIN_BRANCH: main}
    metadata |= {key: list(metadata.get(key) or ()) for key in _LISTS}
    metadata |= {key: dict(metadata.get(key) or {}) for key in ("properties", "refs")}
    return metadata


def _first_spec(metadata: Json) -> Json:
    """The only spec of a table of format version 1, whose fields may have no ids."""
    fields = metadata.get("partition-spec") or []
    numbered = [{"field-id": _FIRST_PARTITION_ID + at, **field} for at, field in enumerate(fields)]
    return {"spec-id": 0, "fields": numbered}


def find_by_id(parts: Sequence[Json], key: str, number: int) -> Json:
    """The part with an id, such as a schema of ``schemas``.

    :raises InvalidUpdate: there is none.
    """
    for part in parts:
        if part[key] == number:
            return part
    raise InvalidUpdate(f"the metadata has no {key} {number}")


def _assign_uuid(edit: _Edit, update: Json) -> None:
    edit.metadata["table-uuid"] = update["uuid"]


def _upgrade_format_version(edit: _Edit, update: Json) -> None:
    version = update["format-version"]
    if version < edit.version and edit.metadata["schemas"]:
        raise InvalidUpdate(f"format version {edit.version} cannot be lowered to {version}")
    metadata = edit.metadata
    metadata["format-version"] = version
    if version == 1:
        metadata.pop("last-sequence-number", None)
        return
    for key in ("schema", "partition-spec"):
        metadata.pop(key, None)
    metadata.setdefault("last-sequence-number", 0)
    if version >= 3:
        metadata.setdefault("next-row-id", 0)
        if metadata["current-snapshot-id"] == _NO_SNAPSHOT:
            metadata["current-snapshot-id"] = None


def _add_schema(edit: _Edit, update: Json) -> None:
    metadata, schema = edit.metadata, update["schema"]
    highest = max(metadata["last-column-id"], update.get("last-column-id") or 0, highest_field_id(schema))
    metadata["last-column-id"] = highest
    known = reused_schema_id(metadata["schemas"], schema)
    if known is None:
        known = max([metadata["current-schema-id"], *(s["schema-id"] + 1 for s in metadata["schemas"])])
        known = max(known, 0)
        metadata["schemas"].append({**schema, "schema-id": known})
    edit.added["schema"] = known


def _set_current_schema(edit: _Edit, update: Json) -> None:
    number = edit.last_added("schema", update["schema-id"])
    find_by_id(edit.metadata["schemas"], "schema-id", number)
    edit.metadata["current-schema-id"] = number


def _add_spec(edit: _Edit, update: Json) -> None:
    metadata, spec = edit.metadata, update["spec"]
    known = reused_spec_id(metadata["partition-specs"], spec)
    if known is None:
        ids = [field["field-id"] for field in spec["fields"]]
        metadata["last-partition-id"] = max([metadata["last-partition-id"], *ids])
        known = max((s["spec-id"] + 1 for s in metadata["partition-specs"]), default=0)
        metadata["partition-specs"].append({**spec, "spec-id": known})
    edit.added["spec"] = known


def _set_default_spec(edit: _Edit, update: Json) -> None:
    number = edit.last_added("spec", update["spec-id"])
    find_by_id(edit.metadata["partition-specs"], "spec-id", number)
    edit.metadata["default-spec-id"] = number


def _add_sort_order(edit: _Edit, update: Json) -> None:
    orders, order = edit.metadata["sort-orders"], update["sort-order"]
    known = reused_order_id(orders, order)
    if known is None:
        known = max([1, *(o["order-id"] + 1 for o in orders)]) if order["fields"] else 0
        orders.append({**order, "order-id": known})
    edit.added["sort order"] = known


def _set_default_sort_order(edit: _Edit, update: Json) -> None:
    number = edit.last_added("sort order", update["sort-order-id"])
    find_by_id(edit.metadata["sort-orders"], "order-id", number)
    edit.metadata["default-sort-order-id"] = number


def _add_snapshot(edit: _Edit, update: Json) -> None:
    metadata, snapshot = edit.metadata, update["snapshot"]
    number = snapshot["snapshot-id"]
    if any(other["snapshot-id"] == number for other in metadata["snapshots"]):
        raise InvalidUpdate(f"the metadata has a snapshot {number} already")
    if edit.version > 1:
        sequence, last = snapshot["sequence-number"], metadata["last-sequence-number"]
        if sequence <= last and snapshot.get("parent-snapshot-id") is not None:
            raise InvalidUpdate(f"the sequence number {sequence} of a new snapshot is not above {last}")
        metadata["last-sequence-number"] = sequence
    if edit.version >= 3:
        metadata["next-row-id"] += snapshot["added-rows"]
    metadata["snapshots"].append(snapshot)
    edit.new_snapshots[number] = snapshot


def _set_snapshot_ref(edit: _Edit, update: Json) -> None:
    metadata, name = edit.metadata, update["ref-name"]
    number = update["snapshot-id"]
    find_by_id(metadata["snapshots"], "snapshot-id", number)
    ref = {key: value for key, value in update.items() if key not in ("action", "ref-name")}
    if metadata["refs"].get(name) == ref:
        return
    metadata["refs"][name] = ref
    if name == MAIN_BRANCH:
        metadata["current-snapshot-id"] = number
        new = edit.new_snapshots.get(number)
        time_ms = edit.now_ms if new is None else new["timestamp-ms"]
        metadata["snapshot-log"].append({"timestamp-ms": time_ms, "snapshot-id": number})


def _remove_snapshot_ref(edit: _Edit, update: Json) -> None:
    name = update["ref-name"]
    if name == MAIN_BRANCH:
        edit.metadata["current-snapshot-id"] = None if edit.version >= 3 else _NO_SNAPSHOT
    edit.metadata["refs"].pop(name, None)


def _remove_snapshots(edit: _Edit, update: Json) -> None:
    metadata, gone = edit.metadata, set(update["snapshot-ids"])
    edit.removes_snapshots = True
    for key in ("snapshots", "statistics", "partition-statistics"):
        metadata[key] = [part for part in metadata[key] if part["snapshot-id"] not in gone]
    for name in [name for name, ref in metadata["refs"].items() if ref["snapshot-id"] in gone]:
        _remove_snapshot_ref(edit, {"ref-name": name})


def _remove_schemas(edit: _Edit, update: Json) -> None:
    metadata, gone = edit.metadata, set(update["schema-ids"])
    if metadata["current-schema-id"] in gone:
        raise InvalidUpdate("the current schema cannot be removed")
    metadata["schemas"] = [schema for schema in metadata["schemas"] if schema["schema-id"] not in gone]


def _set_properties(edit: _Edit, update: Json) -> None:
    edit.metadata["properties"] |= update["updates"]


def _remove_properties(edit: _Edit, update: Json) -> None:
    for key in update["removals"]:
        edit.metadata["properties"].pop(key, None)


def _set_location(edit: _Edit, update: Json) -> None:
    edit.metadata["location"] = update["location"]


_HANDLERS: Mapping[str, Callable[[_Edit, Json], None]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": _upgrade_format_version,
    "add-schema": _add_schema,
    "set-current-schema": _set_current_schema,
    "add-spec": _add_spec,
    "set-default-spec": _set_default_spec,
    "add-sort-order": _add_sort_order,
    "set-default-sort-order": _set_default_sort_order,
    "add-snapshot": _add_snapshot,
    "set-snapshot-ref": _set_snapshot_ref,
    "remove-snapshot-ref": _remove_snapshot_ref,
    "remove-snapshots": _remove_snapshots,
    "remove-schemas": _remove_schemas,
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
    "set-location": _set_location,
}


def _require_sources(metadata: Json) -> None:
    """Require that the current schema has every field by which rows are partitioned or sorted.

    :raises InvalidUpdate: one is missing.
    """
    schema = find_by_id(metadata["schemas"], "schema-id", metadata["current-schema-id"])
    spec = find_by_id(metadata["partition-specs"], "spec-id", metadata["default-spec-id"])
    order = find_by_id(metadata["sort-orders"], "order-id", metadata["default-sort-order-id"])
    used = [("partition spec", field) for field in spec["fields"] if field["transform"] != "void"]
    used += [("sort order", field) for field in order["fields"] if field["transform"] != "void"]
    ids = field_ids(schema) if used else set()
    for what, field in used:
        sources = field.get("source-ids") or [field.get("source-id")]
        if not ids.issuperset(sources):
            raise InvalidUpdate(f"the {what} uses a field that the current schema does not have")
