"""The parts of a metadata file, each read by itself, so that those who need few of them read few."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from icemigrate.frozen import Frozen, field, replace
from icemigrate.model.json_form import BadMetadata, order_from_json, spec_fields_from_json, spec_from_json
from icemigrate.model.marks import FENCE_TAG
from icemigrate.model.metadata_check import (
    check_chosen,
    check_id,
    current_snapshot_id,
    maybe_whole_number,
    read_part,
    read_parts,
    read_schema,
    strings,
    whole_number,
)
from icemigrate.model.partitioning import FIRST_FIELD_ID, PartitionSpec
from icemigrate.model.reserved import FENCE_PROPERTY, OWNER_PROPERTY, SUMMARY_PREFIX
from icemigrate.model.schema import Schema
from icemigrate.model.sorting import ASC, DESC, NULLS_FIRST, NULLS_LAST, UNSORTED, SortOrder
from icemigrate.model.table import MAIN_BRANCH, Ref, Snapshot
from icemigrate.model.table_json import ref_from_json

Json = Mapping[str, Any]

_DIGITS = re.compile("[0-9]{1,18}")
_DIRECTIONS, _NULL_ORDERS = (ASC, DESC), (NULLS_FIRST, NULLS_LAST)

RESERVED_PROPERTIES = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that Iceberg answers itself where properties are shown (``TableProperties.RESERVED_PROPERTIES``)."""
_LEFT_OUT = RESERVED_PROPERTIES | {OWNER_PROPERTY, FENCE_PROPERTY}


class SnapshotEntry(Frozen):
    """One snapshot of the list (specification, "Snapshots").

    :param timestamp_ms: when it was made, in milliseconds since 1970.
    :param schema_id: the schema it was written under; version 1 writers may not say.
    :param manifest_list: absent only in version 1, whose snapshots may name their manifests one by one.
    """

    id: int
    timestamp_ms: int
    parent_id: int | None = None
    sequence_number: int = 0
    schema_id: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    manifest_list: str | None = None


def schema_jsons(json: Json) -> Sequence[Any]:
    """The schemas' JSON; version 1 may have only the one."""
    schemas = json.get("schemas")
    return [json["schema"]] if schemas is None else schemas


def current_schema_id(json: Json) -> int:
    """The id of the current schema."""
    if json.get("schemas") is not None:
        return whole_number(json, "current-schema-id")
    return maybe_whole_number(json["schema"], "schema-id") or 0


def current_schema(json: Json, known: Schema | None = None) -> Schema:
    """The current schema, the others left unread.

    :param known: see :func:`~icemigrate.model.metadata_check.read_schema`.
    """
    current = current_schema_id(json)
    jsons = schema_jsons(json)
    ids = [read_part(f"schemas[{i}]", lambda s: s.get("schema-id", 0), s) for i, s in enumerate(jsons)]
    check_chosen("current-schema-id", current, "schemas", ids)
    at = ids.index(current)
    return read_schema(f"schemas[{at}]", jsons[at], known)


def read_specs(json: Json) -> tuple[PartitionSpec, ...]:
    """All partition specs; the default one is among them."""
    jsons = json.get("partition-specs")
    if jsons is None:
        return (PartitionSpec(read_part("partition-spec", spec_fields_from_json, json["partition-spec"])),)
    specs = read_parts("partition-specs", spec_from_json, jsons)
    for i, spec in enumerate(specs):
        for partition in spec.fields:
            check_id(f"partition-specs[{i}], field {partition.name!r}", partition.id)
            _check_sources(f"partition-specs[{i}], field {partition.name!r}", partition.source_ids)
            if type(partition.name) is not str:
                raise BadMetadata(f"partition-specs[{i}]: a field is named {partition.name!r}")
    check_chosen("default-spec-id", json["default-spec-id"], "partition-specs", [s.id for s in specs])
    return specs


def default_spec_id(json: Json) -> int:
    """The id of the default spec."""
    return whole_number(json, "default-spec-id") if json.get("partition-specs") is not None else 0


def read_orders(json: Json) -> tuple[SortOrder, ...]:
    """All sort orders; the default one is among them."""
    jsons = json.get("sort-orders")
    orders = (UNSORTED,) if jsons is None else read_parts("sort-orders", order_from_json, jsons)
    for i, order in enumerate(orders):
        for term in order.fields:
            _check_sources(f"sort-orders[{i}]", term.source_ids)
            if term.direction not in _DIRECTIONS or term.null_order not in _NULL_ORDERS:
                raise BadMetadata(
                    f"sort-orders[{i}]: {term.direction!r}, {term.null_order!r} is no direction"
                )
    check_chosen("default-sort-order-id", default_order_id(json), "sort-orders", [o.id for o in orders])
    return orders


def _check_sources(part: str, ids: tuple[int, ...]) -> None:
    for id_ in ids:
        check_id(f"{part}, source", id_)


def default_order_id(json: Json) -> int:
    """The id of the default sort order."""
    order_id = maybe_whole_number(json, "default-sort-order-id")
    return UNSORTED.id if order_id is None else order_id


def last_partition_id(json: Json, specs: Sequence[PartitionSpec]) -> int:
    """Version 1 may not say; the library then takes the highest one there is."""
    last: int | None = json.get("last-partition-id")
    if last is not None:
        return last
    return max((f.id for spec in specs for f in spec.fields), default=FIRST_FIELD_ID - 1)


def read_refs(json: Json, ids: set[int]) -> dict[str, Ref]:
    """Branches and tags by name; each points to a snapshot of the list.

    The main branch is never expired (specification, "Snapshot Retention Policy"): its own age says nothing.
    """
    refs = {}
    for name, ref_json in (json.get("refs") or {}).items():
        ref = read_part(f"refs.{name}", _read_ref, ref_json)
        refs[name] = replace(ref, max_ref_age_ms=None) if name == MAIN_BRANCH else ref
        if ref.snapshot_id not in ids:
            raise BadMetadata(f"refs.{name}: none of `snapshots` has the id {ref.snapshot_id}")
    return refs


def _read_ref(json: Json) -> Ref:
    whole_number(json, "snapshot-id")
    for limit in ("max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep"):
        maybe_whole_number(json, limit)
    if json["type"] not in ("branch", "tag"):
        raise BadMetadata(f"`type` is {json['type']!r}, neither branch nor tag")
    return ref_from_json(json)


def own_refs(refs: Mapping[str, Ref]) -> dict[str, Ref]:
    """The references without the tag that fences a table: it is no part of what the table is."""
    return {name: ref for name, ref in refs.items() if name != FENCE_TAG}


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without reserved ones, and without those that say who owns the table."""
    return {key: value for key, value in properties.items() if key not in _LEFT_OUT}


def current_snapshot(json: Json, ids: set[int]) -> Snapshot | None:
    """The summary of the current snapshot, the others left unread."""
    current = current_snapshot_id(json, ids)
    if current is None:
        return None
    # The current one stands last in nearly every file.
    found = next(s for s in reversed(json["snapshots"]) if s["snapshot-id"] == current)
    return snapshot_summary(read_part("the current snapshot", snapshot_from_json, found))


def snapshot_summary(entry: SnapshotEntry) -> Snapshot:
    """What a plan needs of a snapshot."""
    total = entry.summary.get("total-records", "")
    return Snapshot(
        entry.id,
        entry.timestamp_ms,
        int(total) if _DIGITS.fullmatch(total) else None,
        entry.summary.get("operation"),
        {k.removeprefix(SUMMARY_PREFIX): v for k, v in entry.summary.items() if k.startswith(SUMMARY_PREFIX)},
    )


def snapshot_from_json(json: Json) -> SnapshotEntry:
    """Read a snapshot."""
    return SnapshotEntry(
        id=whole_number(json, "snapshot-id"),
        timestamp_ms=whole_number(json, "timestamp-ms"),
        parent_id=maybe_whole_number(json, "parent-snapshot-id"),
        sequence_number=maybe_whole_number(json, "sequence-number") or 0,
        schema_id=maybe_whole_number(json, "schema-id"),
        summary=strings(json, "summary"),
        manifest_list=json.get("manifest-list"),
    )


def snapshot_to_json(snapshot: SnapshotEntry) -> dict[str, Any]:
    """A snapshot as JSON, absent parts left out."""
    out = {
        "snapshot-id": snapshot.id,
        "parent-snapshot-id": snapshot.parent_id,
        "sequence-number": snapshot.sequence_number,
        "timestamp-ms": snapshot.timestamp_ms,
        "summary": dict(snapshot.summary),
        "manifest-list": snapshot.manifest_list,
        "schema-id": snapshot.schema_id,
    }
    return {key: value for key, value in out.items() if value is not None}
