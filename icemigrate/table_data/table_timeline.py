"""The table history in time order, from the metadata files.

A schema, a spec or a tag has no time in metadata: it is that of the first metadata file that has it.  The log
of metadata names older files, as far as they are kept; where they are gone, the oldest one that can be read
has what came before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from icemigrate.diagnostics import format_count
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.metadata_parts import current_schema_id, read_specs
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.partitioning import term_text
from icemigrate.iceberg.ref_names import is_icemigrate_tag
from icemigrate.iceberg.retention import ancestor_ids
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import schema_from_json
from icemigrate.metadata_engine.apply_updates import complete_metadata
from icemigrate.results.timeline_results import TimelineEntry, TimelineResult
from icemigrate.table_data.compare_snapshots import field_differences
from icemigrate.table_data.snapshot_list import utc_time
from icemigrate.table_data.table_session import TableSession

_VERSION = re.compile("-([0-9]{1,18})(?:-(?:before|released)(?:-[0-9]{1,9})?)?$")
_VERSION_KEY = "icemigrate.version"
_NAMED = 5
_ORDER = ("format", "schema", "spec", "sort-order", "snapshot", "branch", "tag")


def table_timeline(tables: TableSession, name: str, *, limit: int | None = None) -> TimelineResult:
    """Every known schema, partition spec, sort order, snapshot, branch and tag of a table's life.

    :param name: of the table, as migration files write it.
    :param limit: number of the newest entries that the result has; ``None`` for all.
    :raises UsageError: there is no such table.
    """
    table = tables.load(name)
    current = table.metadata
    files = [entry["metadata-file"] for entry in current["metadata-log"]]
    read = (tables.environment.catalog.metadata_at(table.name, file) for file in files)
    known = [complete_metadata(json) for json in read if json is not None]
    states: list[Json] = [*known, current]
    entries = [*_of_states(states), *_snapshots(states)]
    entries.sort(key=lambda entry: (entry.at, _ORDER.index(entry.kind)))
    return TimelineResult(
        table=str(table.declared),
        name=str(table.name),
        entries=tuple(entries if limit is None else entries[-limit:]),
        total=len(entries),
        unreadable_files=len(files) - len(known),
    )


def _of_states(states: Sequence[Json]) -> Iterator[TimelineEntry]:
    before: Json | None = None
    for now in states:
        at = utc_time(now["last-updated-ms"])
        is_earlier = before is None and bool(now["metadata-log"])
        found = list(_changes(before, now))
        version = next(
            (v for kind, text, _, v in found if kind == "tag" and v and "-before" not in text), None
        )
        for kind, text, snapshot_id, own in found:
            is_declared = kind in ("schema", "spec", "sort-order", "format")
            yield TimelineEntry(
                at, kind, text, snapshot_id, own or (version if is_declared else None), is_earlier
            )
        before = now


_Change: TypeAlias = "tuple[str, str, int | None, str | None]"
"""Kind, text, snapshot, and version of icemigrate."""


def _changes(before: Json | None, now: Json) -> Iterator[_Change]:
    if before is None or before["format-version"] != now["format-version"]:
        yield "format", f"format version {now['format-version']}", None, None
    yield from _schema_changes(before, now)
    if before is None or before["default-spec-id"] != now["default-spec-id"]:
        yield "spec", _spec_text(now), None, None
    if _order_id(before) != _order_id(now):
        yield "sort-order", f"sort order {_order_id(now)} is current", None, None
    yield from _ref_changes(before, now)


def _schema_changes(before: Json | None, now: Json) -> Iterator[_Change]:
    number = current_schema_id(now)
    if before is None:
        count = len(_schema(now, number).fields)
        yield (
            "schema",
            f"schema {number} with {format_count(count, 'column')} is current",
            None,
            None,
        )
    elif current_schema_id(before) != number:
        differences = list(
            field_differences(_schema(before, current_schema_id(before)), _schema(now, number))
        )
        parts = [f"{one.path} {one.change}" for one in differences[:_NAMED]]
        parts += [f"and {len(differences) - _NAMED} more"] if len(differences) > _NAMED else []
        yield "schema", f"schema {number} is current: {', '.join(parts) or 'another order'}", None, None


def _schema(metadata: Json, number: int) -> Schema:
    return schema_from_json(next(s for s in metadata["schemas"] if s["schema-id"] == number))


def _spec_text(metadata: Json) -> str:
    number = metadata["default-spec-id"]
    schema = _schema(metadata, current_schema_id(metadata))
    spec = next(spec for spec in read_specs(metadata) if spec.id == number)
    terms = [
        term_text(field.transform, schema.path_of(field.source_ids[0]) or (f"field {field.source_ids[0]}",))
        for field in spec.live
    ]
    return f"spec {number} is current: {', '.join(terms) or 'not partitioned'}"


def _order_id(metadata: Json | None) -> int:
    return 0 if metadata is None else int(metadata.get("default-sort-order-id", 0))


def _ref_changes(before: Json | None, now: Json) -> Iterator[_Change]:
    refs: Json = now["refs"]
    old: Json = {} if before is None else before["refs"]
    known = set() if before is None else {s["snapshot-id"] for s in before["snapshots"]}
    for name in sorted(old.keys() | refs.keys()):
        was, ref, shown = old.get(name), refs.get(name), format_path((name,))
        if ref is None:
            assert was is not None
            yield was["type"], f"{was['type']} {shown} was removed", None, _version(name)
            continue
        number: int = ref["snapshot-id"]
        if was is None:
            yield ref["type"], f"{ref['type']} {shown}", number, _version(name)
        elif was["snapshot-id"] != number and (
            # A branch that only got new snapshots has these as events of their own.
            number in known or was["snapshot-id"] not in ancestor_ids(now, number)
        ):
            yield ref["type"], f"{ref['type']} {shown} was set to snapshot {number}", number, None


def _version(name: str) -> str | None:
    found = _VERSION.search(name) if is_icemigrate_tag(name) else None
    return None if found is None else found[1]


def _snapshots(states: Sequence[Json]) -> Iterator[TimelineEntry]:
    found: dict[int, Json] = {s["snapshot-id"]: s for state in states for s in state["snapshots"]}
    there = {snapshot["snapshot-id"] for snapshot in states[-1]["snapshots"]}
    for number, snapshot in found.items():
        summary: Json = snapshot.get("summary") or {}
        counts = [
            f"{sign}{summary[key]} {'row' if summary[key] == '1' else 'rows'}"
            for sign, key in (("+", "added-records"), ("-", "deleted-records"))
            if summary.get(key, "0") != "0"
        ]
        text = " ".join([f"snapshot {number}", str(summary.get("operation", "")), *counts]).strip()
        if number not in there:
            text += " (expired)"
        version = summary.get(_VERSION_KEY)
        yield TimelineEntry(utc_time(snapshot["timestamp-ms"]), "snapshot", text, number, version)
