"""Our reader of metadata against Iceberg's own library, on tables that Spark made."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import to_builtins

from icemigrate.catalog import Catalog, CatalogSettings, open_catalog
from icemigrate.catalog.metadata_files import decode_metadata
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_json import order_to_json, schema_to_json, spec_to_json
from tests.spark.conftest import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Edit = Callable[[str], None]

READERS = ("sqlite", "sql")


@pytest.fixture(params=READERS)
def catalog(request: pytest.FixtureRequest, warehouse: Warehouse) -> Catalog:
    uri = f"sqlite:///{warehouse.database}"
    root = warehouse.settings.catalog_conf["warehouse"]
    return open_catalog(CatalogSettings(warehouse.catalog, request.param, uri, root))


def _evolve(spark: SparkSession, table: str, version: int) -> None:
    """A table with everything that Spark SQL can give it."""
    row = (
        f"INSERT INTO {table} VALUES (1, 'a', 1.5, timestamp'2024-01-01 00:00:00', "
        "named_struct('street', 's', 'zip', 'z'), array('x'), map('k', named_struct('a', 1)), 1.0F, 1)"
    )
    for statement in (
        f"""CREATE TABLE {table} (id bigint NOT NULL COMMENT 'the key', name string, amount decimal(9,2),
            at timestamp NOT NULL, address struct<street: string NOT NULL, zip: string COMMENT 'code'>,
            tags array<string>, attributes map<string, struct<a: int>>, f float, n int)
            USING iceberg PARTITIONED BY (days(at), bucket(16, id))
            TBLPROPERTIES ('format-version'='{version}', 'team'='café',
                'write.metadata.compression-codec'='gzip')""",
        row,
        f"ALTER TABLE {table} WRITE ORDERED BY at, id DESC NULLS LAST",
        f"ALTER TABLE {table} SET IDENTIFIER FIELDS id, at",
        f"ALTER TABLE {table} ADD PARTITION FIELD truncate(4, name) AS short",
        f"ALTER TABLE {table} DROP PARTITION FIELD bucket(16, id)",
        row,
        f"ALTER TABLE {table} DROP COLUMN f",
        f"ALTER TABLE {table} ALTER COLUMN n TYPE bigint",
        f"ALTER TABLE {table} RENAME COLUMN name TO label",
        f"ALTER TABLE {table} CREATE TAG `end of year` RETAIN 30 DAYS",
        f"ALTER TABLE {table} CREATE BRANCH audit RETAIN 7 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS",
        f"COMMENT ON TABLE {table} IS 'Described'",
    ):
        spark.sql(statement)


def _iceberg(spark: SparkSession) -> Any:
    """Iceberg's Java package."""
    assert spark._jvm is not None
    return spark._jvm.org.apache.iceberg


def _java(spark: SparkSession, table: str) -> Any:
    return _iceberg(spark).spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_our_table_is_icebergs_table(
    spark: SparkSession, warehouse: Warehouse, namespace: str, catalog: Catalog, version: int
) -> None:
    full = f"`{warehouse.catalog}`.`{namespace}`.t"
    _evolve(spark, full, version)
    name = TableName((namespace,), "t")
    ours = catalog.load([name])[name]
    assert ours is not None

    theirs, iceberg = _java(spark, full), _iceberg(spark)
    metadata = theirs.operations().current()
    assert schema_to_json(ours.schema) == json.loads(iceberg.SchemaParser.toJson(theirs.schema()))
    assert spec_to_json(ours.spec) == json.loads(iceberg.PartitionSpecParser.toJson(theirs.spec()))
    assert order_to_json(ours.sort_order) == json.loads(iceberg.SortOrderParser.toJson(theirs.sortOrder()))
    assert {spec_id: spec.id for spec_id, spec in _by_id(ours.older_specs, ours.spec).items()} == {
        spec_id: spec_id for spec_id in theirs.specs()
    }
    assert ours.properties == dict(theirs.properties())
    assert {name: to_builtins(ref) for name, ref in ours.refs.items()} == {
        name: json.loads(iceberg.SnapshotRefParser.toJson(ref)) for name, ref in theirs.refs().items()
    }
    assert ours.location == theirs.location() == catalog.default_location(name)
    assert ours.uuid == metadata.uuid()
    assert ours.format_version == metadata.formatVersion() == version
    assert ours.last_column_id == metadata.lastColumnId()
    assert ours.last_partition_id == metadata.lastAssignedPartitionId()
    snapshot = theirs.currentSnapshot()
    assert ours.snapshot is not None
    assert (ours.snapshot.id, ours.snapshot.timestamp_ms) == (
        snapshot.snapshotId(),
        snapshot.timestampMillis(),
    )
    assert ours.snapshot.total_records == spark.table(full).count() == 2
    assert catalog.metadata_location(name) == metadata.metadataFileLocation()


def _by_id(specs: tuple[Any, ...], default: Any) -> dict[int, Any]:
    return {spec.id: spec for spec in (*specs, default)}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_file_of_a_tables_life_is_read_as_iceberg_reads_it(
    spark: SparkSession, warehouse: Warehouse, namespace: str, version: int
) -> None:
    _evolve(spark, f"`{warehouse.catalog}`.`{namespace}`.t", version)
    files = sorted((warehouse.path / namespace / "t" / "metadata").glob("*.metadata.json"))
    assert len(files) == 13
    parser = _iceberg(spark).TableMetadataParser
    for file in files:
        read = decode_metadata(file.read_bytes())
        theirs = json.loads(parser.toJson(parser.fromJson(json.dumps(read))))
        name = TableName((namespace,), "t")
        assert table_from_json(read, name) == table_from_json(theirs, name)


def test_types_of_version_3_are_read(
    spark: SparkSession, warehouse: Warehouse, namespace: str, catalog: Catalog
) -> None:
    full = f"`{warehouse.catalog}`.`{namespace}`.t"
    spark.sql(
        f"CREATE TABLE {full} (id int, v variant, u void) USING iceberg TBLPROPERTIES ('format-version'='3')"
    )
    types, literal = (
        _iceberg(spark).types.Types,
        _iceberg(spark).expressions.Literal,
    )
    update = _java(spark, full).updateSchema().allowIncompatibleChanges()
    update.addRequiredColumn("filled", types.IntegerType.get(), "doc", literal.of(7))
    update.addColumn("ns", types.TimestampNanoType.withZone())
    update.addColumn("geo", types.GeometryType.crs84())
    update.addColumn("geog", types.GeographyType.crs84())
    update.addColumn("code", types.UUIDType.get())
    update.addColumn("bytes", types.FixedType.ofLength(16))
    update.commit()
    name = TableName((namespace,), "t")
    table = catalog.load([name])[name]
    assert table is not None
    assert [schema_to_json(table.schema)["fields"][i]["type"] for i in range(9)] == [
        "int", "variant", "unknown", "int", "timestamptz_ns", "geometry", "geography", "uuid", "fixed[16]",
    ]  # fmt: skip
    filled = table.schema.find(("filled",))
    assert filled is not None
    assert (filled.required, filled.initial_default, filled.write_default) == (True, 7, 7)


def test_views_and_other_catalogs_tables_are_none_of_ours(
    spark: SparkSession, warehouse: Warehouse, namespace: str, catalog: Catalog
) -> None:
    spark.sql(f"CREATE TABLE `{warehouse.catalog}`.`{namespace}`.`odd name` (`a.b` int) USING iceberg")
    spark.sql(f"CREATE VIEW `{warehouse.catalog}`.`{namespace}`.seen AS SELECT 1 AS one")
    odd = TableName((namespace,), "odd name")
    assert catalog.tables((namespace,)) == (odd,)
    table = catalog.load([odd])[odd]
    assert table is not None
    assert [field.name for field in table.schema.fields] == ["a.b"]
    assert table.location == catalog.default_location(odd)
    assert (namespace,) in catalog.namespaces()
