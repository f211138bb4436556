"""The metadata of one state of a table, as the readers of its rows get it.

It has one snapshot and the wanted schema as the current one.  So each reader gives the rows of that snapshot
under that schema, whatever it makes of time travel itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from icemigrate.catalog.file_layouts import DATA_FILE, STATUS, STATUS_DELETED
from icemigrate.catalog.metadata_files import ReadBytes
from icemigrate.frozen import Frozen
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import schema_from_json
from icemigrate.iceberg.types import Primitive
from icemigrate.table_data.live_files import read_manifest
from icemigrate.table_data.table_points import ResolvedPoint

_PATH, _MANIFEST_CONTENT, _EQUALITY_IDS = 500, 517, 135
_EQUALITY_ELEMENT = 136
_DELETES = 1
_SPEC_ID, _PARTITIONS, _PARTITION_SUMMARY, _LOWER_BOUND = 502, 507, 508, 510
_SUMMARIES = (_SPEC_ID, _PARTITIONS, _PARTITION_SUMMARY, _LOWER_BOUND)
_TIMES = ("year", "month", "day", "hour")
_HIDDEN = "__icemigrate_deleted_by_"


class PointMetadata(Frozen):
    """The metadata of one state of a table.

    :param json: with one snapshot, or none.
    :param schema: the schema that the rows are read with.
    :param hidden: dropped columns that only delete files and partition specs need; no query sees them.
    :param lacks_fields: whether one of them is missing: it is nested, or no schema has it.
    :param has_equality_deletes: whether delete files delete rows by their values.
    :param has_early_times: whether files are in partitions by year, month, day or hour of a time before 1970.
    """

    json: Mapping[str, Any]
    schema: Schema
    hidden: tuple[str, ...] = ()
    has_equality_deletes: bool = False
    lacks_fields: bool = False
    has_early_times: bool = False

    @property
    def scan_end(self) -> str:
        """What follows DuckDB's scan of the table in SQL: a limit, which no filter passes, if one loses rows.

        DuckDB 1.5.5 takes a time before 1970 for one of the next year, month, day or hour, and a filter
        skips files that have it.
        """
        return " LIMIT 9000000000000000000" if self.has_early_times else ""

    @property
    def snapshot(self) -> Mapping[str, Any] | None:
        """The snapshot that is read; ``None`` for a table without rows."""
        snapshots = self.json["snapshots"]
        return snapshots[0] if snapshots else None


def point_metadata(metadata: Mapping[str, Any], point: ResolvedPoint, read: ReadBytes) -> PointMetadata:
    """The metadata of one state of a table.

    :param metadata: the complete metadata.
    :param read: reads manifests.
    :raises MetadataError: a manifest of delete files cannot be read.
    """
    snapshots = [
        {**snapshot, "schema-id": point.schema_id}
        for snapshot in metadata["snapshots"]
        if snapshot["snapshot-id"] == point.snapshot_id
    ]
    schemas = {schema["schema-id"]: schema for schema in metadata["schemas"]}
    wanted = schemas[point.schema_id]
    ids = set[int]().union(*(_equality_ids(snapshot, read) for snapshot in snapshots))
    sources = {f["source-id"] for spec in metadata["partition-specs"] for f in spec["fields"]}
    schema = schema_from_json(wanted)
    missing = (ids | sources) - {field.id for _, field in schema.walk()}
    hidden = tuple(_hidden_fields(missing, list(schemas.values())))
    schemas[point.schema_id] = {**wanted, "fields": [*wanted["fields"], *hidden]}
    json = {
        **metadata,
        "current-schema-id": point.schema_id,
        "schemas": list(schemas.values()),
        "snapshots": snapshots,
        "refs": {"main": {"snapshot-id": point.snapshot_id, "type": "branch"}} if snapshots else {},
        "current-snapshot-id": point.snapshot_id if snapshots else None,
        "snapshot-log": [],
        "metadata-log": [],
        "statistics": [],
        "partition-statistics": [],
    }
    json["partition-specs"] = [_without_truncations(spec) for spec in metadata["partition-specs"]]
    # The copy of the current schema in format version 1.
    if "schema" in json:
        json["schema"] = schemas[point.schema_id]
    names = tuple(field["name"] for field in hidden)
    return PointMetadata(
        json,
        schema,
        names,
        bool(ids),
        len(hidden) < len(missing),
        any(_has_early_times(snapshot, metadata["partition-specs"], schema, read) for snapshot in snapshots),
    )


def _without_truncations(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """A partition spec whose truncations are void, so that no filter uses their values.

    DuckDB 1.5.5 truncates some values otherwise than Iceberg, and then skips files that have rows: texts with
    characters of several code points, numbers at the lower limit of their type, and decimals that are
    negative or have more than 18 digits.  The statistics of the column skip the same files.
    """
    fields = [
        {**field, "transform": "void"} if field["transform"].startswith("truncate") else field
        for field in spec["fields"]
    ]
    return {**spec, "fields": fields}


def _has_early_times(
    snapshot: Mapping[str, Any], specs: Sequence[Mapping[str, Any]], schema: Schema, read: ReadBytes
) -> bool:
    """Whether files of a snapshot are in partitions by times before 1970.

    :raises MetadataError: the manifest list cannot be read.
    """
    times = {field.id for _, field in schema.walk() if field.type != Primitive("date")}
    fields = {
        spec["spec-id"]: [
            number
            for number, field in enumerate(spec["fields"])
            if field["transform"] in _TIMES and field["source-id"] in times
        ]
        for spec in specs
    }
    if not any(fields.values()) or "manifest-list" not in snapshot:
        return False
    for manifest in read_manifest("manifest list", snapshot["manifest-list"], _SUMMARIES, read):
        found = manifest.get(_PARTITIONS)
        numbers = fields.get(manifest.get(_SPEC_ID, 0), ())
        if any(found is None or _is_negative(found[number].get(_LOWER_BOUND)) for number in numbers):
            return True
    return False


def _is_negative(bound: bytes | None) -> bool:
    """Whether the smallest number of a partition field is negative; one without numbers is not."""
    return bound is not None and int.from_bytes(bound, "little", signed=True) < 0


def _hidden_fields(missing: set[int], schemas: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Dropped columns by whose values rows were deleted, or files partitioned.

    Without one of the former DuckDB ends the process, without one of the latter each filter fails.
    """
    earlier = {field["id"]: field for schema in schemas for field in schema["fields"]}
    for number in sorted(missing):
        if number in earlier:
            yield {
                "id": number,
                "name": f"{_HIDDEN}{number}",
                "required": False,
                "type": earlier[number]["type"],
            }


def _equality_ids(snapshot: Mapping[str, Any], read: ReadBytes) -> set[int]:
    """The fields by whose values the snapshot's delete files delete rows."""
    summary = snapshot.get("summary") or {}
    if summary.get("total-delete-files") == "0" or "manifest-list" not in snapshot:
        return set()
    if summary.get("total-equality-deletes") == "0":
        return set()
    found = set[int]()
    lists = read_manifest("manifest list", snapshot["manifest-list"], (_PATH, _MANIFEST_CONTENT), read)
    for manifest in [m[_PATH] for m in lists if m.get(_MANIFEST_CONTENT) == _DELETES]:
        wanted = (STATUS, DATA_FILE, _EQUALITY_IDS, _EQUALITY_ELEMENT)
        for entry in read_manifest("manifest", manifest, wanted, read):
            if entry[STATUS] != STATUS_DELETED:
                found.update(entry[DATA_FILE].get(_EQUALITY_IDS) or ())
    return found
