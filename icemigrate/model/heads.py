"""Where the branches of others stand: what migrations, which change the rows of main alone, leave behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.model.marks import is_own_branch
from icemigrate.model.metadata_check import maybe_whole_number, read_part, read_schema
from icemigrate.model.metadata_parts import (
    current_schema_id,
    schema_jsons,
    snapshot_from_json,
    snapshot_summary,
)
from icemigrate.model.schema import Schema
from icemigrate.model.table import MAIN_BRANCH, Head, Ref

Json = Mapping[str, Any]


def read_heads(json: Json, refs: Mapping[str, Ref], current: Schema) -> dict[str, Head]:
    """The heads of all branches but main and those of icemigrate, by name.

    Costs nothing where there are none, as on nearly every table.

    :param json: a metadata file whose references are known to point to snapshots of its list.
    :param current: its current schema, which need not be read again.
    :raises BadMetadata: a snapshot or a schema that is needed is damaged.
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
        heads[name] = Head(snapshot_summary(entry), schemas[entry.schema_id], is_behind)
    return heads


def _is_others(name: str, ref: Ref) -> bool:
    return ref.kind == "branch" and name != MAIN_BRANCH and not is_own_branch(name)


def _history(json: Json, snapshots: Mapping[int, Json]) -> Iterator[int]:
    """The snapshots that main has come by, as far as they are known; each once, whatever the file says."""
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
