"""The parts of a metadata file, each read separately, so that callers read only those they need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.json_text import Json, Raw, read_json, read_values
from icemigrate.iceberg.lazy_types import SCHEMA
from icemigrate.iceberg.metadata_check import (
    check_chosen,
    check_id,
    current_snapshot_id,
    maybe_whole_number,
    read_part,
    read_parts,
    read_schema,
    whole_number,
)
from icemigrate.iceberg.partitioning import (
    ASC,
    DESC,
    FIRST_FIELD_ID,
    NULLS_FIRST,
    NULLS_LAST,
    UNSORTED,
    PartitionSpec,
    SortOrder,
)
from icemigrate.iceberg.ref_names import FENCE_TAG, is_icemigrate_branch
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import BadMetadata, order_from_json, spec_fields_from_json, spec_from_json
from icemigrate.iceberg.table import MAIN_BRANCH, BranchHead, Ref, Snapshot
from icemigrate.iceberg.table_properties import (
    BATCH_PROPERTY,
    COMMIT_PROPERTY,
    CREATION_PROPERTY,
    FENCE_PROPERTY,
    OWNER_PROPERTY,
    SUMMARY_PREFIX,
)
from icemigrate.iceberg.written_schemas import WrittenSchema

T = TypeVar("T")

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
_EXCLUDED_PROPERTIES = RESERVED_PROPERTIES | {
    OWNER_PROPERTY,
    BATCH_PROPERTY,
    FENCE_PROPERTY,
    COMMIT_PROPERTY,
    CREATION_PROPERTY,
}


class SnapshotEntry(Frozen, rename="kebab"):
    """One snapshot of the list (specification, "Snapshots").

    :param timestamp_ms: its time, in milliseconds since 1970.
    :param schema_id: the schema it was written under; version 1 writers may omit it.
    :param manifest_list: absent only in version 1, whose snapshots may list their manifests directly.
    """

    id: int = field(name="snapshot-id")
    timestamp_ms: int
    parent_id: int | None = field(default=None, name="parent-snapshot-id")
    sequence_number: int = 0
    schema_id: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    manifest_list: str | None = None


def schema_jsons(json: Json) -> Sequence[Any]:
    """The schemas' JSON; version 1 may have only the one."""
    schemas = json.get("schemas")
    if schemas is None:
        return [json["schema"]]
    return [WrittenSchema(schema, SCHEMA) if isinstance(schema, Raw) else schema for schema in schemas]


def current_schema_id(json: Json) -> int:
    """The id of the current schema."""
    if json.get("schemas") is not None:
        return whole_number(json, "current-schema-id")
    return maybe_whole_number(json["schema"], "schema-id") or 0


def current_schema(json: Json, known: Schema | None = None) -> Schema:
    """The current schema, without reading the others.

    :param known: see :func:`~icemigrate.iceberg.metadata_check.read_schema`.
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
    """Version 1 may omit it; then it is the highest id, as in the library."""
    last: int | None = json.get("last-partition-id")
    if last is not None:
        return last
    return max((f.id for spec in specs for f in spec.fields), default=FIRST_FIELD_ID - 1)


def read_refs(json: Json, ids: set[int]) -> dict[str, Ref]:
    """Branches and tags by name; each points to a snapshot of the list.

    The main branch never expires (specification, "Snapshot Retention Policy"): its own age has no meaning.
    """
    refs = {}
    for name, ref_json in (json.get("refs") or {}).items():
        ref = read_part(f"refs.{name}", _read_ref, ref_json)
        refs[name] = replace(ref, max_ref_age_ms=None) if name == MAIN_BRANCH else ref
        if ref.snapshot_id not in ids:
            raise BadMetadata(f"refs.{name}: none of `snapshots` has the id {ref.snapshot_id}")
    return refs


def _read_ref(json: Json) -> Ref:
    ref = _values(json, Ref)
    if ref.kind not in ("branch", "tag"):
        raise BadMetadata(f"`type` is {ref.kind!r}, neither branch nor tag")
    return ref


def refs_without_fence(refs: Mapping[str, Ref]) -> dict[str, Ref]:
    """The references without the fence tag, which is not part of a table's state."""
    return {name: ref for name, ref in refs.items() if name != FENCE_TAG}


def unreserved_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without reserved ones, and without those of the table's owner."""
    return {key: value for key, value in properties.items() if key not in _EXCLUDED_PROPERTIES}


def current_snapshot(json: Json, ids: set[int]) -> Snapshot | None:
    """The summary of the current snapshot, without reading the others."""
    current = current_snapshot_id(json, ids)
    if current is None:
        return None
    # The current one is the last in nearly every file.
    found = next(s for s in reversed(json["snapshots"]) if s["snapshot-id"] == current)
    return to_snapshot(read_part("the current snapshot", snapshot_from_json, found))


def to_snapshot(entry: SnapshotEntry) -> Snapshot:
    """The snapshot for a plan."""
    total = entry.summary.get("total-records", "")
    return Snapshot(
        entry.id,
        entry.timestamp_ms,
        int(total) if _DIGITS.fullmatch(total) else None,
        entry.summary.get("operation"),
        {k.removeprefix(SUMMARY_PREFIX): v for k, v in entry.summary.items() if k.startswith(SUMMARY_PREFIX)},
    )


def snapshot_from_json(json: Json) -> SnapshotEntry:
    """Read a snapshot, also one of :data:`~icemigrate.iceberg.metadata_check.SNAPSHOT`.

    :raises BadMetadata: a value is missing or has a wrong type.
    """
    read = {key: read_json(value) if type(value) is Raw else value for key, value in json.items()}
    return _values(read, SnapshotEntry)


def check_snapshots(json: Json) -> None:
    """Check every snapshot and the snapshot log, of which a plan reads only the heads of branches.

    :raises BadMetadata: a value is missing or has a wrong type.
    """
    read_parts("snapshots", snapshot_from_json, json.get("snapshots") or ())
    read_parts("snapshot-log", _log_entry, json.get("snapshot-log") or ())


def _log_entry(json: Json) -> tuple[int, int]:
    return whole_number(json, "timestamp-ms"), whole_number(json, "snapshot-id")


def _values(json: Json, kind: type[T]) -> T:
    try:
        # A key that is null is a key that is absent.
        return read_values({key: value for key, value in json.items() if value is not None}, kind)
    except ValueError as error:
        raise BadMetadata(str(error)) from error


def read_heads(json: Json, refs: Mapping[str, Ref], current: Schema) -> dict[str, BranchHead]:
    """The heads of all branches except main and those of icemigrate, by name.

    Costs nothing without branches, as on nearly every table.

    :param json: a metadata file whose references point to snapshots of its list.
    :param current: its current schema, which need not be read again.
    :raises BadMetadata: a required snapshot or schema is damaged.
    """
    branches = {name: ref for name, ref in refs.items() if _is_others(name, ref)}
    if not branches:
        return {}
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in json["snapshots"]}
    history = frozenset(_history(json, snapshots))
    schemas: dict[int | None, Schema | None] = {current_schema_id(json): current, None: None}
    heads = {}
    for name, ref in branches.items():
        entry = read_part(f"the snapshot of branch {name}", snapshot_from_json, snapshots[ref.snapshot_id])
        if entry.schema_id not in schemas:
            schemas[entry.schema_id] = _schema(json, entry.schema_id)
        is_behind = entry.id in history
        heads[name] = BranchHead(to_snapshot(entry), schemas[entry.schema_id], is_behind)
    return heads


def _is_others(name: str, ref: Ref) -> bool:
    return ref.kind == "branch" and name != MAIN_BRANCH and not is_icemigrate_branch(name)


def _history(json: Json, snapshots: Mapping[int, Json]) -> Iterator[int]:
    """The known snapshots in main's log, each once."""
    seen = set[int]()
    at = maybe_whole_number(json, "current-snapshot-id")
    while at is not None and at in snapshots and at not in seen:
        seen.add(at)
        yield at
        at = maybe_whole_number(snapshots[at], "parent-snapshot-id")


def _schema(json: Json, schema_id: int | None) -> Schema | None:
    for number, schema in enumerate(schema_jsons(json)):
        if schema.get("schema-id", 0) == schema_id:
            return read_schema(f"schemas[{number}]", schema)
    return None


def layout_of(metadata: Json) -> str:
    """The ids of the schema and the partition spec that new files of a table have."""
    return f"{current_schema_id(metadata)}/{default_spec_id(metadata)}"
