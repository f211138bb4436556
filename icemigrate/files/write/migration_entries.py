"""Writes migration entries: a table as a declaration, and the entry that changes one table to another.

The inverse of replay, which tests verify: replaying the entry on the one table gives the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from icemigrate.files.replay.replay_settings import follow_column_changes
from icemigrate.files.write.entry_parts import (
    DISTRIBUTIONS,
    EntryData,
    column_entry,
    declarable_retention,
    partition_terms,
    reference_entries,
    sort_terms,
)
from icemigrate.files.write.schema_entries import SchemaEntry, schema_between
from icemigrate.files.write.yaml_text import to_yaml
from icemigrate.hidden_characters import escape_hidden_characters
from icemigrate.iceberg import retention
from icemigrate.iceberg.kept_views import is_kept_view_key, without_kept_views
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import (
    CURRENT_SNAPSHOT,
    DEFAULT_FORMAT_VERSION,
    DESCRIPTION_PROPERTY,
    DISTRIBUTION_PROPERTY,
    MAIN_BRANCH,
    Ref,
    Table,
)


def creation_entry(table: Table) -> EntryData:
    """The entry that creates the table, without default values.

    Kept views are left out: a new table has no readers of earlier names.
    """
    paths, properties = _paths(table), without_kept_views(table.properties)
    out: EntryData = {"name": str(table.name)}
    if DESCRIPTION_PROPERTY in table.properties:
        out["description"] = table.properties[DESCRIPTION_PROPERTY]
    if table.format_version != DEFAULT_FORMAT_VERSION:
        out["format_version"] = table.format_version
    if table.location is not None:
        out["location"] = table.location
    out["columns"] = [column_entry(f) for f in table.schema.fields]
    return out | _given(
        {
            "identifier": _identifier(table, paths),
            "partition_by": partition_terms(table.spec, paths),
            "sort_by": sort_terms(table.sort_order, paths),
            **_property_keys({}, {k: v for k, v in properties.items() if k != DESCRIPTION_PROPERTY}),
            "branches": reference_entries(table, "branch"),
            "tags": reference_entries(table, "tag"),
        }
    )


def entry_between(before: Table | None, after: Table | None) -> EntryData:
    """The entry that changes ``before`` to ``after``, fields matched by id; ``None`` is no table.

    Changes that no entry can express are left out: of an initial default and of a location.  A field that is
    listed in ``before.dropped`` is restored under its id.
    """
    if after is None:
        assert before is not None, "nothing leads from nothing to nothing"
        return {"name": str(before.name), "drop": True}
    if before is None:
        return creation_entry(after)
    schema = schema_between(before, after)
    out: EntryData = {"name": str(after.name)}
    if before.name != after.name:
        out["renamed_from"] = str(before.name)
    out |= _given(_settings_before_columns(before, after))
    out |= _given(schema.keys)
    out |= _layout_between(before, after)
    properties = follow_column_changes(dict(before.properties), schema.renaming)
    changed = {
        key: after.properties.get(key)
        for key in (*properties, *(k for k in after.properties if k not in properties))
        if properties.get(key) != after.properties.get(key)
    }
    out |= _dropped_views(changed, after)
    out |= _description(changed)
    out |= _given(_property_keys(properties, changed, after.properties))
    return out | _given(_references_between(before, after))


def format_migration_file(
    entries: Iterable[Mapping[str, Any]],
    description: str | None = None,
    allow: Iterable[str] = (),
    because: str | None = None,
    namespaces: Iterable[str] = (),
    header: str | None = None,
    replaces: Mapping[str, Any] | None = None,
    comments: Iterable[str] = (),
) -> str:
    """The text of a migration file with these table entries.

    :param replaces: of a squash, the versions that it replaces.
    :param header: a comment's text for the first line.
    :param comments: further lines of it.
    """
    document: EntryData = _given({"description": description, "allow": list(allow), "because": because})
    document |= _given({"replaces": replaces})
    document |= _given({"namespaces": list(namespaces), "tables": [dict(e) for e in entries]})
    lines = (*(() if header is None else (header,)), *comments)
    return "".join(f"# {escape_hidden_characters(line)}\n" for line in lines) + to_yaml(document)


def _given(keys: EntryData) -> EntryData:
    """The keys without empty values."""
    return {key: value for key, value in keys.items() if value not in (None, [], {}, ())}


def _paths(table: Table) -> dict[int, FieldPath]:
    return {i: entry.path for i, entry in schema_index(table.schema).items()}


def _identifier(table: Table, paths: Mapping[int, FieldPath]) -> list[str]:
    return [format_path(path) for i, path in paths.items() if i in table.schema.identifier_ids]


def _settings_before_columns(before: Table, after: Table) -> EntryData:
    changed = before.format_version != after.format_version
    return {"format_version": after.format_version if changed else None}


def _layout_between(before: Table, after: Table) -> EntryData:
    """Identifier, partitioning and order where they differ; an empty list clears."""
    out: EntryData = {}
    paths = _paths(after)
    if before.schema.identifier_ids != after.schema.identifier_ids:
        out["identifier"] = _identifier(after, paths)
    known = {(f.source_ids, f.transform): f.name for f in before.spec.live}
    if [(f.source_ids, f.transform, f.name) for f in before.spec.live] != [
        (f.source_ids, f.transform, f.name) for f in after.spec.live
    ]:
        out["partition_by"] = partition_terms(after.spec, paths, known)
    if before.sort_order.fields != after.sort_order.fields:
        out["sort_by"] = sort_terms(after.sort_order, paths)
    return out


def _description(changed: dict[str, str | None]) -> EntryData:
    if DESCRIPTION_PROPERTY not in changed:
        return {}
    return {"description": changed.pop(DESCRIPTION_PROPERTY)}


def _dropped_views(changed: dict[str, str | None], after: Table) -> EntryData:
    """The key that drops all kept views of a table.

    Other differences of views are left out: no key drops one of several views, and a view that is new or
    differs belongs to the renames of one migration.

    :param changed: the changed properties; those of views are removed from it.
    """
    views = [*filter(is_kept_view_key, changed)]
    for key in views:
        del changed[key]
    return {"keep_view": None} if views and not any(map(is_kept_view_key, after.properties)) else {}


def _property_keys(
    before: Mapping[str, str], changed: Mapping[str, str | None], after: Mapping[str, str] | None = None
) -> EntryData:
    """The keys that declare these properties; ``None`` removes one."""
    left = dict(changed)
    out: EntryData = {}
    if left.get(DISTRIBUTION_PROPERTY) in DISTRIBUTIONS:
        out["write_distribution"] = left.pop(DISTRIBUTION_PROPERTY)
    policy = _retention_between(left, before, after if after is not None else _present(changed))
    out["properties"] = left
    out["retention"] = policy
    return out


def _present(properties: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if value is not None}


def _retention_between(
    left: dict[str, str | None], before: Mapping[str, str], after: Mapping[str, str]
) -> EntryData:
    """The retention's part of the changed properties, removed from ``left``."""
    said = declarable_retention(after)
    out: EntryData = {}
    snapshots: EntryData = {}
    for word, key in (("max_age", retention.SNAPSHOT_AGE), ("keep_at_least", retention.SNAPSHOT_COUNT)):
        if key in left and (left[key] is None or word in said.get("snapshots", {})):
            snapshots[word] = said.get("snapshots", {}).get(word)
            del left[key]
    if snapshots:
        out["snapshots"] = snapshots
    rows = (retention.ROW_COLUMN, retention.ROW_AGE)
    if any(key in left for key in rows):
        gone = all(key in before and key not in after for key in rows)
        if gone or "rows" in said:
            out["rows"] = None if gone else said["rows"]
            for key in rows:
                left.pop(key, None)
    return out


def _references_between(before: Table, after: Table) -> EntryData:
    out: EntryData = {}
    for key, kind in (("branches", "branch"), ("tags", "tag")):
        moved = [n for n in before.pins if _moved(before.refs.get(n), after.refs.get(n))]
        old, new = reference_entries(before, kind), reference_entries(after, kind, moved)
        names = [*new, *(name for name in old if name not in new)]
        out[key] = {
            # The main branch cannot be taken away, its limits can.
            name: new.get(name, {} if name == MAIN_BRANCH else None)
            for name in names
            if old.get(name) != new.get(name)
        }
    return out


def _moved(old: Ref | None, new: Ref | None) -> bool:
    """Whether a tag moved.  Branches move with every write."""
    tags = [r.snapshot_id for r in (old, new) if r is not None and r.kind == "tag"]
    return len(tags) == 2 and CURRENT_SNAPSHOT not in tags and tags[0] != tags[1]


__all__ = ["SchemaEntry", "creation_entry", "entry_between", "format_migration_file"]
