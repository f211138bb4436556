"""The difference of two states of a table, as updates and requirements of Iceberg's REST protocol.

Updates come in the order in which ``TableMetadata.Builder`` of Iceberg's Java library needs them.
Requirements are those of its ``UpdateRequirements.forUpdateTable``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.ref_names import FENCE_TAG
from icemigrate.iceberg.schema_json import order_to_json, schema_to_json, spec_to_json
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, MAIN_BRANCH, Ref, Table
from icemigrate.metadata_engine.apply_updates import LAST_ADDED
from icemigrate.metadata_engine.equal_parts import reused_order_id, reused_schema_id, reused_spec_id


def table_updates(json: Json, before: Table, after: Table) -> list[Json]:
    """The updates that change one state of a table to another.

    A reference to :data:`~icemigrate.iceberg.table.CURRENT_SNAPSHOT` is one to the current snapshot, which
    the table must have.

    :param json: the metadata that ``before`` was read from; an equal schema, spec or order in it is used
        again.
    """
    return [
        *_format_version(before, after),
        *_schema(json, before, after),
        *_spec(json, before, after),
        *_order(json, before, after),
        *property_updates(before.properties, after.properties),
        *_refs(before, after),
        *_location(before, after),
    ]


def property_updates(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Json]:
    """The updates from some properties to others."""
    new = {key: value for key, value in after.items() if before.get(key) != value}
    gone = [key for key in before if key not in after]
    if new:
        yield {"action": "set-properties", "updates": new}
    if gone:
        yield {"action": "remove-properties", "removals": gone}


def ref_update(name: str, ref: Ref, snapshot_id: int) -> Json:
    """The update that sets a branch or a tag."""
    limits = {
        "max-ref-age-ms": ref.max_ref_age_ms,
        "max-snapshot-age-ms": ref.max_snapshot_age_ms,
        "min-snapshots-to-keep": ref.min_snapshots_to_keep,
    }
    return {
        "action": "set-snapshot-ref",
        "ref-name": name,
        "snapshot-id": snapshot_id,
        "type": ref.kind,
        **{key: value for key, value in limits.items() if value is not None},
    }


def _format_version(before: Table, after: Table) -> Iterator[Json]:
    if after.format_version != before.format_version:
        yield {"action": "upgrade-format-version", "format-version": after.format_version}


def _schema(json: Json, before: Table, after: Table) -> Iterator[Json]:
    last = max(after.last_column_id, before.last_column_id)
    if (before.schema.fields, before.schema.identifier_ids, before.last_column_id) == (
        after.schema.fields,
        after.schema.identifier_ids,
        last,
    ):
        return
    known = reused_schema_id(json.get("schemas") or (), schema_to_json(after.schema))
    if known is None or last != before.last_column_id:
        yield {"action": "add-schema", "schema": schema_to_json(after.schema), "last-column-id": last}
    if known is None:
        yield {"action": "set-current-schema", "schema-id": LAST_ADDED}
    elif known != json.get("current-schema-id"):
        yield {"action": "set-current-schema", "schema-id": known}


def _spec(json: Json, before: Table, after: Table) -> Iterator[Json]:
    if after.spec.fields == before.spec.fields:
        return
    spec = spec_to_json(after.spec)
    known = reused_spec_id(json.get("partition-specs") or (), spec)
    if known is None:
        yield {"action": "add-spec", "spec": spec}
    if known is None or known != json.get("default-spec-id"):
        yield {"action": "set-default-spec", "spec-id": LAST_ADDED if known is None else known}


def _order(json: Json, before: Table, after: Table) -> Iterator[Json]:
    if after.sort_order.fields == before.sort_order.fields:
        return
    # Iceberg uses id 0 for the unsorted order.
    order = {**order_to_json(after.sort_order), "order-id": 1 if after.sort_order.fields else 0}
    known = reused_order_id(json.get("sort-orders") or (), order)
    if known is None:
        yield {"action": "add-sort-order", "sort-order": order}
    if known is None or known != json.get("default-sort-order-id"):
        yield {"action": "set-default-sort-order", "sort-order-id": LAST_ADDED if known is None else known}


def _refs(before: Table, after: Table) -> Iterator[Json]:
    for name in before.refs.keys() - after.refs.keys():
        yield {"action": "remove-snapshot-ref", "ref-name": name}
    for name, ref in after.refs.items():
        if before.refs.get(name) == ref:
            continue
        number = ref.snapshot_id
        if number == CURRENT_SNAPSHOT:
            assert after.snapshot is not None, f"{name} needs a snapshot"
            number = after.snapshot.id
        yield ref_update(name, ref, number)


def _location(before: Table, after: Table) -> Iterator[Json]:
    if after.location is not None and after.location != before.location:
        yield {"action": "set-location", "location": after.location}


def requirements(json: Json, updates: Iterable[Json], unmoved: Sequence[str] = ()) -> list[Json]:
    """What a REST server compares before it applies updates to a table.

    The fence tag is one of them in every commit: it moves when another process takes the lock over, see
    :mod:`icemigrate.spark.commit_fence`.

    :param json: the metadata that the updates were made for.
    :param unmoved: further branches and tags that must be where they are in that metadata.
    """
    refs: Mapping[str, Any] = json.get("refs") or {}
    actions = [update["action"] for update in updates]
    moved = [update["ref-name"] for update in updates if update["action"] == "set-snapshot-ref"]
    found: list[Json] = [{"type": "assert-table-uuid", "uuid": json["table-uuid"]}]
    if "remove-schemas" in actions:
        branches = [n for n, r in refs.items() if r["type"] == "branch" and n != MAIN_BRANCH]
        moved += branches
    for name in dict.fromkeys((FENCE_TAG, *moved, *unmoved)):
        number = refs[name]["snapshot-id"] if name in refs else None
        found.append({"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": number})
    if "add-schema" in actions:
        last = json["last-column-id"]
        found.append({"type": "assert-last-assigned-field-id", "last-assigned-field-id": last})
    if {"set-current-schema", "remove-schemas"}.intersection(actions):
        current = json.get("current-schema-id", 0)
        found.append({"type": "assert-current-schema-id", "current-schema-id": current})
    if "add-spec" in actions:
        last = json.get("last-partition-id")
        found.append({"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": last})
    if "set-default-spec" in actions:
        found.append({"type": "assert-default-spec-id", "default-spec-id": json.get("default-spec-id", 0)})
    if "set-default-sort-order" in actions:
        current = json.get("default-sort-order-id", 0)
        found.append({"type": "assert-default-sort-order-id", "default-sort-order-id": current})
    return found
