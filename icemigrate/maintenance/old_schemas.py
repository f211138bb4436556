"""Actions that remove old schemas: every migration leaves one in the table's metadata."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from icemigrate.diagnostics import format_count, format_size
from icemigrate.iceberg.metadata_parts import schema_jsons
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.maintenance.context import (
    ActionOrSkipped,
    ActionSkipped,
    MaintenanceAction,
    MaintenanceContext,
)
from icemigrate.maintenance.needed_schemas import unneeded_schema_ids
from icemigrate.maintenance.retention_actions import DeclaredTable, declared_tables, some_names
from icemigrate.results.maintain_results import ActionSummary, SkippedTable

if TYPE_CHECKING:
    from icemigrate.spark.commit_ports import CommittingEngine

_PART = "schemas"
_MUCH = 100_000
"""Bytes of schemas that only tags need, above which ``maintain`` reports them."""


def find_old_schemas(
    look: MaintenanceContext, expiring: Mapping[TableName, frozenset[int]]
) -> Iterator[ActionOrSkipped]:
    """The actions for old schemas of declared tables.

    :param expiring: by table, ids of the snapshots that expire in the same run.  If one of them does not
        expire, its schema stays.
    """
    for found in declared_tables(look, _PART):
        if isinstance(found, SkippedTable):
            yield found
            continue
        metadata = look.metadata(found.name)
        if metadata is None:
            # It may have gone just now.
            yield from look.unreadable_among([found.name], _PART)
            continue
        gone = expiring.get(found.name, frozenset())
        if not unneeded_schema_ids(metadata, (), gone | _tagged(metadata).keys()):
            continue  # without the history, which takes longer to read
        recorded = (found.recorded.schema, *look.recorded_schemas(found.table.uuid))
        old = unneeded_schema_ids(metadata, recorded, gone)
        if old:
            yield _removal(found, metadata, old, recorded)
        if kept := _kept_by_tags(metadata, recorded, gone, old):
            yield SkippedTable(_PART, str(found.name), kept)


def _removal(
    found: DeclaredTable, metadata: Mapping[str, Any], old: frozenset[int], recorded: Sequence[Schema]
) -> MaintenanceAction:
    from icemigrate.spark.schema_removal import removal_text

    name, uuid = found.name, found.table.uuid
    total, size = len(schema_jsons(metadata)), format_size(_bytes(metadata, old))
    text = f"remove {len(old)} of {total} schemas ({size}), unused by any snapshot, branch, tag or undo"
    shown = ActionSummary(_PART, str(name), text, removal_text(name, old))
    return MaintenanceAction(shown, name, uuid, partial(_remove, name, uuid, old, recorded), schemas=old)


def _remove(
    name: TableName,
    uuid: str | None,
    shown: frozenset[int],
    recorded: Sequence[Schema],
    engine: CommittingEngine,
) -> str:
    done = engine.commits.remove_schemas(name, uuid, lambda now: shown & unneeded_schema_ids(now, recorded))
    if done.refusal is not None:
        raise ActionSkipped(f"the catalog does not remove schemas: {done.refusal}", ends_part=True)
    if not done.removed:
        raise ActionSkipped("its schemas are needed now")
    return f"{format_count(done.removed, 'schema')} removed"


def _tagged(metadata: Mapping[str, Any]) -> dict[int, str]:
    """The names of tags by the ids of their snapshots."""
    refs = (metadata.get("refs") or {}).items()
    return {ref["snapshot-id"]: name for name, ref in refs if ref["type"] == "tag"}


def _kept_by_tags(
    metadata: Mapping[str, Any], recorded: Sequence[Schema], gone: frozenset[int], old: frozenset[int]
) -> str | None:
    """Why old schemas stay: only snapshots of tags need them.  ``None`` where they are small."""
    tagged = _tagged(metadata)
    kept = unneeded_schema_ids(metadata, recorded, gone | tagged.keys()) - old
    size = _bytes(metadata, kept)
    if size < _MUCH:
        return None
    snapshots = metadata.get("snapshots") or ()
    names = [
        tagged[s["snapshot-id"]]
        for s in snapshots
        if s["snapshot-id"] in tagged and s["snapshot-id"] not in gone and s.get("schema-id") in kept
    ]
    are = "1 old schema is" if len(kept) == 1 else f"{len(kept)} old schemas are"
    return f"{are} needed by tags ({format_size(size)}): {some_names(sorted(names))}"


def _bytes(metadata: Mapping[str, Any], ids: Collection[int]) -> int:
    """The size of schemas in a metadata file."""
    found = (schema for schema in schema_jsons(metadata) if schema.get("schema-id", 0) in ids)
    return sum(len(json.dumps(schema, separators=(",", ":"))) for schema in found)
