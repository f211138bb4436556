"""What a table is and contains: schema, spec, order, sizes, health and growth."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from statistics import median_low
from typing import Any

from icemigrate.iceberg.metadata_parts import (
    current_schema,
    default_order_id,
    default_spec_id,
    read_orders,
    read_specs,
)
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.partitioning import SortTerm, term_text
from icemigrate.iceberg.retention import ancestor_ids
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table_properties import whole_number
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Field, JsonValue, List, Map, Struct
from icemigrate.redaction import MASK, holds_secret
from icemigrate.results.describe_results import (
    ColumnDescription,
    DescribeResult,
    GrowthPoint,
    TableSizes,
    TermDescription,
)
from icemigrate.table_data.file_lists import open_files, snapshot_or_current
from icemigrate.table_data.live_files import DATA, LiveFile, SnapshotManifest
from icemigrate.table_data.snapshot_list import utc_time
from icemigrate.table_data.table_health import table_health
from icemigrate.table_data.table_session import CurrentTable, TableSession

_NESTED = {Struct: "struct", List: "list", Map: "map"}


def describe_table(
    tables: TableSession, name: str, *, is_plot: bool = False, at: datetime | None = None
) -> DescribeResult:
    """What a table is, and what its current snapshot contains.

    :param name: of the table, as migration files write it.
    :param is_plot: whether text draws the growth.
    :param at: the time that ages are counted from; ``None`` for now.
    :raises UsageError: there is no such table.
    :raises MetadataError: a manifest cannot be read.
    """
    table = tables.load(name)
    metadata = table.metadata
    reader, snapshot = open_files(tables, table), snapshot_or_current(table, None)
    manifests, files = reader.manifests(snapshot), list(reader.of(snapshot))
    schema = current_schema(metadata)
    updated = utc_time(metadata["last-updated-ms"])
    log = metadata["metadata-log"]
    kinds = [ref["type"] for ref in metadata["refs"].values()]
    return DescribeResult(
        table=str(table.declared),
        name=str(table.name),
        uuid=metadata.get("table-uuid"),
        format_version=metadata["format-version"],
        file_format=metadata["properties"].get("write.format.default", "parquet"),
        location=metadata["location"],
        metadata_location=table.stored.location,
        created_at=utc_time(log[0]["timestamp-ms"]) if log else updated,
        updated_at=updated,
        columns=tuple(_columns(schema)),
        schema_id=schema.id,
        spec_id=default_spec_id(metadata),
        partition_by=tuple(_partition_fields(metadata, schema)),
        sort_by=tuple(_sort_terms(metadata, schema)),
        properties=_properties(metadata["properties"]),
        sizes=table_sizes(files, manifests),
        snapshots=len(metadata["snapshots"]),
        branches=kinds.count("branch"),
        tags=kinds.count("tag"),
        schemas=len(metadata["schemas"]),
        specs=len(metadata["partition-specs"]),
        metadata_files=len(log) + 1,
        health=tuple(table_health(table, files, manifests, at or datetime.now(timezone.utc))),
        growth=tuple(table_growth(table)),
        is_plot=is_plot,
    )


def table_sizes(files: Sequence[LiveFile], manifests: Sequence[SnapshotManifest]) -> TableSizes:
    """The numbers of a snapshot.

    :param files: its data files and delete files.
    """
    data = [file for file in files if file.content == DATA]
    deletes = [file for file in files if file.content != DATA]
    sizes = sorted(file.size for file in data)
    return TableSizes(
        rows=sum(file.rows for file in data),
        data_files=len(data),
        data_bytes=sum(sizes),
        delete_files=len(deletes),
        deletes=sum(file.rows for file in deletes),
        delete_bytes=sum(file.size for file in deletes),
        manifests=len(manifests),
        manifest_bytes=sum(manifest.length for manifest in manifests),
        smallest_bytes=sizes[0] if sizes else None,
        median_bytes=median_low(sizes) if sizes else None,
        largest_bytes=sizes[-1] if sizes else None,
        partitions=len({(file.spec_id, tuple(sorted(file.partition.items(), key=str))) for file in data}),
    )


def table_growth(table: CurrentTable) -> Iterator[GrowthPoint]:
    """The snapshots of main, the oldest first, with the numbers in their summaries."""
    metadata = table.metadata
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
    for number in reversed(list(ancestor_ids(metadata, metadata.get("current-snapshot-id")))):
        summary = by_id[number].get("summary") or {}
        yield GrowthPoint(
            snapshot_id=number,
            at=utc_time(by_id[number]["timestamp-ms"]),
            rows=whole_number(summary.get("total-records")),
            data_files=whole_number(summary.get("total-data-files")),
            size_bytes=whole_number(summary.get("total-files-size")),
        )


def _columns(schema: Schema) -> Iterator[ColumnDescription]:
    for path, field in schema.walk():
        yield ColumnDescription(
            field_id=field.id,
            path=format_path(path),
            type=_type(field),
            required=field.required,
            is_identifier=field.id in schema.identifier_ids,
            doc=field.doc,
            initial_default=_default(field.initial_default),
            write_default=_default(field.write_default),
        )


def _type(field: Field) -> str:
    return _NESTED.get(type(field.type)) or format_type(field.type)


def _default(value: JsonValue) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _partition_fields(metadata: Mapping[str, Any], schema: Schema) -> Iterator[TermDescription]:
    current = default_spec_id(metadata)
    spec = next(spec for spec in read_specs(metadata) if spec.id == current)
    for field in spec.live:
        source = schema.path_of(field.source_ids[0]) or (f"field {field.source_ids[0]}",)
        yield TermDescription(term_text(field.transform, source), field.id, field.name)


def _sort_terms(metadata: Mapping[str, Any], schema: Schema) -> Iterator[TermDescription]:
    current = default_order_id(metadata)
    order = next(order for order in read_orders(metadata) if order.id == current)
    for field in order.fields:
        source = schema.path_of(field.source_ids[0]) or (f"field {field.source_ids[0]}",)
        yield TermDescription(str(SortTerm(source, field.transform, field.direction, field.null_order)))


def _properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        key: MASK if holds_secret(key, properties[key]) else properties[key] for key in sorted(properties)
    }
