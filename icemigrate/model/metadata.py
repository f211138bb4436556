"""Iceberg's table metadata: JSON → values → JSON, with nothing lost (specification, "Table Metadata Fields").

Two ways in.  :func:`parse` checks and reads everything, for those who change metadata or keep it.
:func:`table_from_json` reads only what a :class:`~icemigrate.model.table.Table` needs: a plan looks at every
table of a project, and older schemas and hundreds of snapshots are most of a file.  Both give the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from icemigrate.frozen import PartlyCompared, field
from icemigrate.model.heads import read_heads
from icemigrate.model.json_form import order_to_json, schema_to_json, spec_to_json
from icemigrate.model.metadata_check import (
    FORM,
    check_chosen,
    check_top,
    current_snapshot_id,
    read_parts,
    read_schema,
    snapshot_ids,
    strings,
)
from icemigrate.model.metadata_parts import (
    SnapshotEntry,
    current_schema,
    current_schema_id,
    current_snapshot,
    default_order_id,
    default_spec_id,
    last_partition_id,
    own_properties,
    own_refs,
    read_orders,
    read_refs,
    read_specs,
    schema_jsons,
    snapshot_from_json,
    snapshot_summary,
    snapshot_to_json,
)
from icemigrate.model.names import TableName
from icemigrate.model.partitioning import PartitionSpec
from icemigrate.model.reserved import OWNER_PROPERTY
from icemigrate.model.schema import Schema
from icemigrate.model.sorting import SortOrder
from icemigrate.model.table import Ref, Table
from icemigrate.model.table_json import ref_to_json

Json = Mapping[str, Any]

__all__ = ["FORM", "TableMetadata", "dump", "parse", "table_from_json", "to_table"]


class TableMetadata(PartlyCompared):
    """A metadata file as values.

    :param uuid: absent only in version 1.
    :param current_snapshot_id: ``None`` where the table has no current snapshot.
    :param source: the JSON it was read from, empty for metadata that was made here.  What no other attribute
        holds (logs, statistics, row lineage, keys, what a later specification adds) is kept in it, see
        :func:`dump`.
    """

    uncompared = frozenset({"source"})

    format_version: int
    uuid: str | None
    location: str
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int
    specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    last_partition_id: int
    sort_orders: tuple[SortOrder, ...]
    default_order_id: int
    properties: Mapping[str, str] = field(default_factory=dict)
    snapshots: tuple[SnapshotEntry, ...] = ()
    current_snapshot_id: int | None = None
    refs: Mapping[str, Ref] = field(default_factory=dict)
    source: Json = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return next(s for s in self.schemas if s.id == self.current_schema_id)

    @property
    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return next(s for s in self.specs if s.id == self.default_spec_id)

    @property
    def sort_order(self) -> SortOrder:
        """The default sort order."""
        return next(o for o in self.sort_orders if o.id == self.default_order_id)


def parse(json: Json) -> TableMetadata:
    """Read a whole metadata file of format version 1, 2 or 3.

    :raises BadMetadata: a part is missing, of the wrong type, doubled, or points to nothing; it is named.
    """
    version = check_top(json)
    schemas = tuple(read_schema(f"schemas[{i}]", s) for i, s in enumerate(schema_jsons(json)))
    current = current_schema_id(json)
    check_chosen("current-schema-id", current, "schemas", [s.id for s in schemas])
    ids = snapshot_ids(json)
    specs = read_specs(json)
    orders = read_orders(json)
    return TableMetadata(
        format_version=version,
        uuid=json.get("table-uuid"),
        location=json["location"],
        last_updated_ms=json["last-updated-ms"],
        last_column_id=json["last-column-id"],
        schemas=schemas,
        current_schema_id=current,
        specs=specs,
        default_spec_id=default_spec_id(json),
        last_partition_id=last_partition_id(json, specs),
        sort_orders=orders,
        default_order_id=default_order_id(json),
        properties=strings(json, "properties"),
        snapshots=read_parts("snapshots", snapshot_from_json, json.get("snapshots") or ()),
        current_snapshot_id=current_snapshot_id(json, ids),
        refs=read_refs(json, ids),
        source=json,
    )


def to_table(metadata: TableMetadata, name: TableName) -> Table:
    """What a plan needs of a table's metadata."""
    current = next((s for s in metadata.snapshots if s.id == metadata.current_snapshot_id), None)
    return Table(
        name=name,
        schema=metadata.schema,
        spec=metadata.spec,
        sort_order=metadata.sort_order,
        properties=own_properties(metadata.properties),
        format_version=metadata.format_version,
        location=metadata.location,
        refs=own_refs(metadata.refs),
        owner=metadata.properties.get(OWNER_PROPERTY),
        uuid=metadata.uuid,
        last_column_id=metadata.last_column_id,
        last_partition_id=metadata.last_partition_id,
        older_specs=tuple(s for s in metadata.specs if s.id != metadata.default_spec_id),
        older_orders=tuple(o for o in metadata.sort_orders if o.id != metadata.default_order_id),
        snapshot=None if current is None else snapshot_summary(current),
    )


def table_from_json(json: Json, name: TableName, known: Table | None = None) -> Table:
    """The table of a metadata file, without reading older schemas and snapshots.

    Equal to ``to_table(parse(json), name)``, many times quicker; where branches stand, it alone tells.

    :param known: the table as it is known to be: its columns are taken over where they are written so.
    :raises BadMetadata: as :func:`parse`, for the parts that are read.
    """
    version = check_top(json)
    ids = snapshot_ids(json)
    specs, default_spec = read_specs(json), default_spec_id(json)
    orders, default_order = read_orders(json), default_order_id(json)
    schema, refs = (
        current_schema(json, None if known is None else known.schema),
        own_refs(read_refs(json, ids)),
    )
    return Table(
        name=name,
        schema=schema,
        spec=next(s for s in specs if s.id == default_spec),
        sort_order=next(o for o in orders if o.id == default_order),
        properties=own_properties(strings(json, "properties")),
        format_version=version,
        location=json["location"],
        refs=refs,
        owner=strings(json, "properties").get(OWNER_PROPERTY),
        uuid=json.get("table-uuid"),
        last_column_id=json["last-column-id"],
        last_partition_id=last_partition_id(json, specs),
        older_specs=tuple(s for s in specs if s.id != default_spec),
        older_orders=tuple(o for o in orders if o.id != default_order),
        snapshot=current_snapshot(json, ids),
        heads=read_heads(json, refs, schema),
    )


def dump(metadata: TableMetadata) -> dict[str, Any]:
    """The metadata as JSON.

    Parts that are as they were read are written as they were read, so that what this version of icemigrate
    does not know stays; only what was changed since takes our own form.  The values are shared with
    ``metadata.source``: do not change them in place.
    """
    before = parse(metadata.source) if metadata.source else None
    out = dict(metadata.source)
    for key, attribute, form in _PARTS:
        value = getattr(metadata, attribute)
        if before is None or getattr(before, attribute) != value:
            out[key] = form(value)
    for key, attribute, form in _LISTS:
        values = getattr(metadata, attribute)
        was = () if before is None else getattr(before, attribute)
        if before is None or was != values:
            jsons = metadata.source.get(key)
            # Version 1 may have written its one schema or spec under another key.
            as_read = {} if jsons is None else {i.id: (i, j) for i, j in zip(was, jsons, strict=True)}
            out[key] = [_as_read(item, as_read) or form(item) for item in values]
    _fit_version(out, metadata, before)
    return {key: value for key, value in out.items() if value is not None or key in metadata.source}


def _as_read(item: Any, as_read: Mapping[int, tuple[Any, Any]]) -> Any:
    was, json = as_read.get(item.id, (None, None))
    return json if was == item else None


def _fit_version(out: dict[str, Any], metadata: TableMetadata, before: TableMetadata | None) -> None:
    """The keys that one format version has and another has not."""
    if metadata.format_version == 1:
        if before is None or (before.schema, before.spec) != (metadata.schema, metadata.spec):
            out["schema"] = schema_to_json(metadata.schema)
            out["partition-spec"] = spec_to_json(metadata.spec)["fields"]
            # A file of old has only those two; once ids matter it needs the lists as well.
            for key, attribute, form in _LISTS[:2]:
                out[key] = (
                    [form(item) for item in getattr(metadata, attribute)] if key not in out else out[key]
                )
            out["current-schema-id"] = metadata.current_schema_id
            out["default-spec-id"] = metadata.default_spec_id
        return
    if before is not None and before.format_version == 1:
        out.pop("schema", None)
        out.pop("partition-spec", None)
    if "last-sequence-number" not in out:
        out["last-sequence-number"] = max((s.sequence_number for s in metadata.snapshots), default=0)
    if metadata.format_version >= 3:
        out.setdefault("next-row-id", 0)


def _plain(value: Any) -> Any:
    return value


def _refs_to_json(refs: Mapping[str, Ref]) -> dict[str, Any]:
    return {name: ref_to_json(ref) for name, ref in refs.items()}


_PARTS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("format-version", "format_version", _plain),
    ("table-uuid", "uuid", _plain),
    ("location", "location", _plain),
    ("last-updated-ms", "last_updated_ms", _plain),
    ("last-column-id", "last_column_id", _plain),
    ("current-schema-id", "current_schema_id", _plain),
    ("default-spec-id", "default_spec_id", _plain),
    ("last-partition-id", "last_partition_id", _plain),
    ("default-sort-order-id", "default_order_id", _plain),
    ("properties", "properties", dict),
    ("current-snapshot-id", "current_snapshot_id", _plain),
    ("refs", "refs", _refs_to_json),
)
"""Key, attribute, and how the value is written."""

_LISTS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("schemas", "schemas", schema_to_json),
    ("partition-specs", "specs", spec_to_json),
    ("sort-orders", "sort_orders", order_to_json),
    ("snapshots", "snapshots", snapshot_to_json),
)
"""The same for lists of things with ids; schemas and specs stand first."""
