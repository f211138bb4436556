"""Writes parts of a table entry: columns, terms, retention, references. The inverse of replay."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from icemigrate.files.parse.term_text import format_partition
from icemigrate.iceberg import retention
from icemigrate.iceberg.names import FieldPath, quote_name
from icemigrate.iceberg.partitioning import PartitionSpec, SortOrder, SortTerm, default_name
from icemigrate.iceberg.table import Ref, Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Field, List, Map, Struct, Type, is_nested, walk_fields

TEXT_LIMIT = 70
"""A longer nested type is written as YAML."""
DISTRIBUTIONS = ("none", "hash", "range")
MAX_SNAPSHOT_COUNT = 1_000_000
_DURATION = re.compile(r"[1-9][0-9]{0,5}[smhdw]")

EntryData = dict[str, Any]
"""A mapping in YAML form."""


def column_entry(field: Field, name: str | None = None) -> EntryData:
    """A new column, or a new nested field, with all values that differ from their defaults.

    A default is one value in a declaration; where the initial one differs from the write default, the write
    default is written.
    """
    out: EntryData = {"name": quote_name(field.name) if name is None else name, **type_keys(field.type)}
    if field.required:
        out["required"] = True
    if field.write_default is not None:
        out["default"] = field.write_default
    if field.doc is not None:
        out["description"] = field.doc
    return out


def type_keys(type_: Type) -> EntryData:
    """A type as the keys of a column: ``type``, or for a long or described one ``fields``, ``element``, …"""
    text = format_type(type_)
    inside = [f for _, f in walk_fields(type_)]
    plain = all(f.doc is None and f.initial_default is None and f.write_default is None for f in inside)
    if not is_nested(type_) or (plain and len(text) <= TEXT_LIMIT) or type_ == Struct(()):
        return {"type": text}
    if isinstance(type_, Struct):
        return {"fields": [column_entry(f) for f in type_.fields]}
    if isinstance(type_, List):
        return {"element": _part(type_.element)}
    assert isinstance(type_, Map)
    return {"key": _part(type_.key), "value": _part(type_.value)}


def _part(field: Field) -> EntryData | str:
    keys = type_keys(field.type)
    if field.required and field.name != "key":
        keys["required"] = True
    return str(keys["type"]) if list(keys) == ["type"] else keys


def partition_terms(
    spec: PartitionSpec, paths: Mapping[int, FieldPath], known: Mapping[Any, str] | None = None
) -> list[str]:
    """The live fields as terms; default names are left out.

    :param paths: of the fields, by id; a term without a source field cannot be written and is left out.
    :param known: names of existing terms, by sources and transform.
    """
    out = []
    for f in spec.live:
        path = paths.get(f.source_ids[0])
        if path is None or len(f.source_ids) > 1:
            continue
        named = (known or {}).get((f.source_ids, f.transform), f.name)
        unsaid = f.name == named == default_name(path, f.transform)
        out.append(format_partition(path, f.transform, None if unsaid else f.name))
    return out


def sort_terms(order: SortOrder, paths: Mapping[int, FieldPath]) -> list[str]:
    """The fields as terms; a term without a source field is left out."""
    return [
        str(SortTerm(paths[f.source_ids[0]], f.transform, f.direction, f.null_order))
        for f in order.fields
        if f.source_ids[0] in paths and len(f.source_ids) == 1
    ]


def declarable_retention(properties: Mapping[str, str]) -> dict[str, dict[str, str | int]]:
    """The retention in the table properties, as far as a declaration can express it."""
    said = retention.from_properties(properties)
    snapshots = {
        key: value
        for key, value in said.get("snapshots", {}).items()
        if _has_properties(properties, {"snapshots": {key: value}}) and _fits(value)
    }
    rows = said.get("rows", {})
    out: dict[str, dict[str, str | int]] = {"snapshots": snapshots} if snapshots else {}
    if rows and _has_properties(properties, {"rows": rows}) and _fits(rows["max_age"]) and rows["column"]:
        out["rows"] = rows
    return out


def _has_properties(properties: Mapping[str, str], said: Mapping[str, Any]) -> bool:
    return all(properties.get(key) == value for key, value in retention.to_properties(said).items())


def _fits(value: str | int) -> bool:
    if isinstance(value, int):
        return 1 <= value <= MAX_SNAPSHOT_COUNT
    return _DURATION.fullmatch(value) is not None


def reference_entries(table: Table, kind: str, pinned: Collection[str] = ()) -> dict[str, EntryData]:
    """The branches or the tags; ages that no duration can express are left out.

    :param pinned: the names of those whose snapshot is written too.
    """
    return {
        name: {**({"snapshot": ref.snapshot_id} if name in pinned else {}), **_reference(ref)}
        for name, ref in table.refs.items()
        if ref.kind == kind
    }


def with_pins(entry: EntryData, table: Table) -> EntryData:
    """The entry of a declared table, its branches and tags with the snapshots that files declare for them."""
    pinned: EntryData = {}
    for key in ("branches", "tags"):
        for name, reference in entry.get(key, {}).items():
            pin = table.pins.get(name)
            value = {} if pin is None else {pin.key: int(pin.value) if pin.key == "snapshot" else pin.value}
            pinned.setdefault(key, {})[name] = {**value, **reference}
    return entry | pinned


def is_declarable_ref(ref: Ref) -> bool:
    """Whether a file can declare the retention of a branch or a tag, so that it can be created again.

    Spark SQL cannot express less than minutes.
    """
    ages = [ms for ms in (ref.max_ref_age_ms, ref.max_snapshot_age_ms) if ms is not None]
    kept = ref.min_snapshots_to_keep
    is_kept = kept is None or _fits(kept)
    return is_kept and all(
        ms % retention.MINUTE_MS == 0 and _fits(retention.format_duration(ms)) for ms in ages
    )


def _reference(ref: Ref) -> EntryData:
    snapshots: EntryData = {}
    _say_age(snapshots, ref.max_snapshot_age_ms)
    if ref.min_snapshots_to_keep is not None:
        snapshots["keep_at_least"] = ref.min_snapshots_to_keep
    out: EntryData = {}
    _say_age(out, ref.max_ref_age_ms)
    if snapshots:
        out["snapshots"] = snapshots
    return {"retention": out} if out else {}


def _say_age(out: EntryData, ms: int | None) -> None:
    text = "" if ms is None else retention.format_duration(ms)
    if _fits(text):
        out["max_age"] = text
