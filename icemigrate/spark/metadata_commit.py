"""One commit of changed table metadata through Iceberg's Java API.

Java objects are created from the specification's JSON by Iceberg's own parsers; no Java type is built field
by field here. Only the difference between two states of a table is changed.
"""

from __future__ import annotations

import json
from typing import Any

from icemigrate.errors import EngineError
from icemigrate.iceberg.partitioning import PartitionSpec, SortOrder
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import order_to_json, schema_to_json, spec_to_json
from icemigrate.iceberg.table import MAIN_BRANCH, Ref, Table

_OF_REST = "RESTTableOperations"


def build_metadata(iceberg: Any, base: Any, before: Table, after: Table) -> Any:
    """Java's ``TableMetadata`` that carries ``base`` from one state to another.

    :param iceberg: Py4J's view of the package ``org.apache.iceberg``.
    :param base: Java's ``TableMetadata`` from which ``before`` was read.
    """
    builder = iceberg.TableMetadata.buildFrom(base)
    if after.format_version != before.format_version:
        builder.upgradeFormatVersion(after.format_version)
    schema = base.schema()
    if _schema_differs(before, after):
        schema = java_schema(iceberg, after.schema)
        builder.setCurrentSchema(schema, max(after.last_column_id, before.last_column_id))
    if after.spec.fields != before.spec.fields:
        builder.setDefaultPartitionSpec(java_spec(iceberg, schema, after.spec))
    if after.sort_order.fields != before.sort_order.fields:
        builder.setDefaultSortOrder(java_order(iceberg, schema, after.sort_order))
    _properties(builder, before, after)
    _refs(iceberg, builder, before, after)
    if after.location is not None and after.location != before.location:
        builder.setLocation(after.location)
    return builder.build()


def assert_main_unmoved(iceberg: Any, operations: Any, built: Any) -> Any:
    """The same metadata, with updates for which a REST catalog asserts that main has not moved.

    Only an update that sets a reference asserts it (``UpdateRequirements``): so main gets another limit, and
    then its own.  The table's snapshot log names its snapshot again; for a table without a snapshot nothing
    can be asserted.

    :param operations: Java's ``TableOperations`` for the commit; those of other catalogs assert all metadata.
    :param built: Java's ``TableMetadata`` to commit.
    """
    main = built.ref(MAIN_BRANCH)
    if main is None or operations.getClass().getSimpleName() != _OF_REST:
        return built
    other = iceberg.SnapshotRef.builderFrom(main).minSnapshotsToKeep((main.minSnapshotsToKeep() or 0) + 1)
    builder = iceberg.TableMetadata.buildFrom(built)
    return builder.setRef(MAIN_BRANCH, other.build()).setRef(MAIN_BRANCH, main).build()


def assert_references_unmoved(iceberg: Any, operations: Any, base: Any) -> Any:
    """The same metadata, with updates for which a REST catalog asserts that no reference has moved or is
    gone.

    Each reference gets another limit, and then its own, as in :func:`assert_main_unmoved`.

    :param operations: Java's ``TableOperations`` for the commit; those of other catalogs assert all metadata.
    :param base: Java's ``TableMetadata`` from which a commit starts.
    """
    refs = dict(base.refs())
    if not refs or operations.getClass().getSimpleName() != _OF_REST:
        return base
    builder = iceberg.TableMetadata.buildFrom(base)
    for name, ref in refs.items():
        other = iceberg.SnapshotRef.builderFrom(ref)
        if ref.isBranch():
            other.minSnapshotsToKeep((ref.minSnapshotsToKeep() or 0) + 1)
        else:
            other.maxRefAgeMs(2 if ref.maxRefAgeMs() == 1 else 1)
        builder.setRef(name, other.build()).setRef(name, ref)
    return builder.build()


def _schema_differs(before: Table, after: Table) -> bool:
    # The server chooses the id; the id in a target does not count.
    return (before.schema.fields, before.schema.identifier_ids, before.last_column_id) != (
        after.schema.fields,
        after.schema.identifier_ids,
        max(after.last_column_id, before.last_column_id),
    )


def java_schema(iceberg: Any, schema: Schema) -> Any:
    """Java's ``Schema``."""
    return iceberg.SchemaParser.fromJson(json.dumps(schema_to_json(schema)))


def java_spec(iceberg: Any, schema: Any, spec: PartitionSpec) -> Any:
    """Java's ``PartitionSpec``, bound to Java's schema."""
    return iceberg.PartitionSpecParser.fromJson(schema, json.dumps(spec_to_json(spec)))


def java_order(iceberg: Any, schema: Any, order: SortOrder) -> Any:
    """Java's ``SortOrder``, bound to Java's schema; the commit sets its id."""
    if not order.fields:
        return iceberg.SortOrder.unsorted()
    # Iceberg uses id 0 for the unsorted order.
    return iceberg.SortOrderParser.fromJson(schema, json.dumps({**order_to_json(order), "order-id": 1}))


def _properties(builder: Any, before: Table, after: Table) -> None:
    new = {k: v for k, v in after.properties.items() if before.properties.get(k) != v}
    gone = {k for k in before.properties if k not in after.properties}
    if new:
        builder.setProperties(new)
    if gone:
        builder.removeProperties(gone)


def _refs(iceberg: Any, builder: Any, before: Table, after: Table) -> None:
    for name in before.refs.keys() - after.refs.keys():
        builder.removeRef(name)
    for name, ref in after.refs.items():
        if before.refs.get(name) != ref:
            builder.setRef(name, _java_ref(iceberg, name, ref, after))


def _java_ref(iceberg: Any, name: str, ref: Ref, table: Table) -> Any:
    snapshot_id = ref.snapshot_id
    if snapshot_id < 0:  # declared: the snapshot that is current when the reference is made
        if table.snapshot is None:
            raise EngineError(
                f"table `{table.name}` has no snapshot that {ref.kind} `{name}` could refer to",
                "write rows first",
            )
        snapshot_id = table.snapshot.id
    make = iceberg.SnapshotRef.tagBuilder if ref.kind == "tag" else iceberg.SnapshotRef.branchBuilder
    builder = make(snapshot_id)
    if ref.max_ref_age_ms is not None:
        builder.maxRefAgeMs(ref.max_ref_age_ms)
    if ref.max_snapshot_age_ms is not None:
        builder.maxSnapshotAgeMs(ref.max_snapshot_age_ms)
    if ref.min_snapshots_to_keep is not None:
        builder.minSnapshotsToKeep(ref.min_snapshots_to_keep)
    return builder.build()
