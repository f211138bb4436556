"""Migrations written by us: a table as a declaration, and the entry that leads from one table to another.

The inverse of the fold, and held to that: an entry folded over the one table gives the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from icemigrate.declare.author_parts import (
    DISTRIBUTIONS,
    Entry,
    column,
    partition_terms,
    references,
    sayable_retention,
    sort_terms,
)
from icemigrate.declare.author_schema import SchemaEntry, schema_between
from icemigrate.declare.fold_settings import follow
from icemigrate.declare.yaml_text import to_yaml
from icemigrate.hidden_characters import escaped
from icemigrate.model import retention
from icemigrate.model.names import Path, format_path
from icemigrate.model.schema import index
from icemigrate.model.table import (
    CURRENT_SNAPSHOT,
    DEFAULT_FORMAT_VERSION,
    DESCRIPTION_PROPERTY,
    DISTRIBUTION_PROPERTY,
    MAIN_BRANCH,
    Ref,
    Table,
)


def document(table: Table) -> Entry:
    """The entry that declares the table where there is none, without what goes without saying."""
    paths = _paths(table)
    out: Entry = {"name": str(table.name)}
    if DESCRIPTION_PROPERTY in table.properties:
        out["description"] = table.properties[DESCRIPTION_PROPERTY]
    if table.format_version != DEFAULT_FORMAT_VERSION:
        out["format_version"] = table.format_version
    if table.location is not None:
        out["location"] = table.location
    out["columns"] = [column(f) for f in table.schema.fields]
    return out | _given(
        {
            "identifier": _identifier(table, paths),
            "partition_by": partition_terms(table.spec, paths),
            "sort_by": sort_terms(table.sort_order, paths),
            **_property_keys({}, {k: v for k, v in table.properties.items() if k != DESCRIPTION_PROPERTY}),
            "branches": references(table.refs, "branch"),
            "tags": references(table.refs, "tag"),
        }
    )


def entry_between(before: Table | None, after: Table | None) -> Entry:
    """The entry that makes ``after`` of ``before``, fields matched by id; ``None`` is no table.

    What no entry can say is left out: an initial default that changes, and a location that does.
    A field that stands in ``before.dropped`` is restored under its id.
    """
    if after is None:
        assert before is not None, "nothing leads from nothing to nothing"
        return {"name": str(before.name), "drop": True}
    if before is None:
        return document(after)
    schema = schema_between(before, after)
    out: Entry = {"name": str(after.name)}
    if before.name != after.name:
        out["renamed_from"] = str(before.name)
    out |= _given(_settings_before_columns(before, after))
    out |= _given(schema.keys)
    out |= _layout_between(before, after)
    properties = follow(dict(before.properties), schema.renaming)
    changed = {
        key: after.properties.get(key)
        for key in (*properties, *(k for k in after.properties if k not in properties))
        if properties.get(key) != after.properties.get(key)
    }
    out |= _description(changed)
    out |= _given(_property_keys(properties, changed, after.properties))
    return out | _given(_references_between(before, after))


def dump(
    entries: Iterable[Mapping[str, Any]],
    description: str | None = None,
    allow: Iterable[str] = (),
    because: str | None = None,
    namespaces: Iterable[str] = (),
    header: str | None = None,
    replaces: Mapping[str, Any] | None = None,
) -> str:
    """A migration file of these table entries.

    :param replaces: of a squash, what it stands for.
    :param header: a comment's text for the first line.
    """
    document: Entry = _given({"description": description, "allow": list(allow), "because": because})
    document |= _given({"replaces": replaces})
    document |= _given({"namespaces": list(namespaces), "tables": [dict(e) for e in entries]})
    return ("" if header is None else f"# {escaped(header)}\n") + to_yaml(document)


def _given(keys: Entry) -> Entry:
    """The keys without those that say nothing."""
    return {key: value for key, value in keys.items() if value not in (None, [], {}, ())}


def _paths(table: Table) -> dict[int, Path]:
    return {i: entry.path for i, entry in index(table.schema).items()}


def _identifier(table: Table, paths: Mapping[int, Path]) -> list[str]:
    return [format_path(path) for i, path in paths.items() if i in table.schema.identifier_ids]


def _settings_before_columns(before: Table, after: Table) -> Entry:
    changed = before.format_version != after.format_version
    return {"format_version": after.format_version if changed else None}


def _layout_between(before: Table, after: Table) -> Entry:
    """Identifier, partitioning and order where they differ; an empty list clears."""
    out: Entry = {}
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


def _description(changed: dict[str, str | None]) -> Entry:
    if DESCRIPTION_PROPERTY not in changed:
        return {}
    return {"description": changed.pop(DESCRIPTION_PROPERTY)}


def _property_keys(
    before: Mapping[str, str], changed: Mapping[str, str | None], after: Mapping[str, str] | None = None
) -> Entry:
    """The keys that say these properties; ``None`` is one that goes."""
    left = dict(changed)
    out: Entry = {}
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
) -> Entry:
    """The retention's part of what changes, taken out of ``left``."""
    said = sayable_retention(after)
    out: Entry = {}
    snapshots: Entry = {}
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


def _references_between(before: Table, after: Table) -> Entry:
    out: Entry = {}
    for key, kind in (("branches", "branch"), ("tags", "tag")):
        old, new = references(before.refs, kind), references(after.refs, kind)
        names = [*new, *(name for name in old if name not in new)]
        out[key] = {
            # The main branch cannot be taken away, its limits can.
            name: new.get(name, {} if name == MAIN_BRANCH else None)
            for name in names
            if old.get(name) != new.get(name) or _moved(before.refs.get(name), after.refs.get(name))
        }
    return out


def _moved(old: Ref | None, new: Ref | None) -> bool:
    """Whether a tag points elsewhere; to name it again is to mean it where it is."""
    tags = [r.snapshot_id for r in (old, new) if r is not None and r.kind == "tag"]
    return len(tags) == 2 and CURRENT_SNAPSHOT not in tags and tags[0] != tags[1]


__all__ = ["SchemaEntry", "document", "dump", "entry_between"]
