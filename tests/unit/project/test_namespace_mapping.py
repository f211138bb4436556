"""Names and overrides of an environment, both ways; and how Spark is started for it."""

from __future__ import annotations

import pickle
from datetime import timedelta

from icemigrate.diagnostics import FilePosition
from icemigrate.execution.spark_start import spark_settings
from icemigrate.files.read.migration_file import Retention, SnapshotRetention
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.project import CatalogDescription, Environment, Secret, SparkConfig, TableOverride
from icemigrate.project.namespace_mapping import NamespaceMapping, catalog_settings

PLACE = FilePosition("icemigrate.yaml")
SQLITE = CatalogDescription("lake", "sqlite", "/data/catalog.db", "/data/warehouse")


def names(*overrides: TableOverride) -> NamespaceMapping:
    spaces = {"bronze": "prod_bronze", "bronze.raw": "elsewhere.raw"}
    return NamespaceMapping(Environment("prod", SQLITE, namespaces=spaces, overrides=overrides))


def test_names_there_and_back() -> None:
    for declared, there in (
        ("bronze.t", "prod_bronze.t"),
        ("bronze.deep.er.t", "prod_bronze.deep.er.t"),
        ("bronze.raw.t", "elsewhere.raw.t"),
        ("silver.bronze.t", "silver.bronze.t"),
    ):
        assert str(names().table(TableName.parse(declared))) == there
        assert str(names().declared(TableName.parse(there))) == declared


def test_another_process_gets_names_without_secrets() -> None:
    catalog = CatalogDescription("lake", "rest", "http://127.0.0.1", credential=Secret("id-7x:secret-7x"))
    mapping = NamespaceMapping(Environment("prod", catalog, namespaces={"bronze": "prod_bronze"}))
    sent = pickle.dumps(mapping.names_only())
    assert b"secret-7x" not in sent
    assert str(pickle.loads(sent).table(TableName.parse("bronze.t"))) == "prod_bronze.t"


def test_overrides_go_by_declared_names_in_their_order() -> None:
    mapped = names(
        TableOverride(
            "bronze.*", PLACE, {"a": "1", "b": None}, location="s3://x/{namespace}/{table}/{other}"
        ),
        TableOverride("bronze.t", PLACE, {"a": "2"}),
        TableOverride("prod_bronze.*", PLACE, {"never": "1"}),
    )
    table = Table(TableName(("prod_bronze",), "t"), Schema(), properties={"b": "0", "c": "0"})
    adjusted = mapped.adjust(table)
    assert adjusted.properties == {"c": "0", "a": "2"}
    assert adjusted.location == "s3://x/prod_bronze/t/{other}"
    assert adjusted.schema == table.schema
    other = Table(TableName(("silver",), "t"), Schema(), properties={"b": "0"})
    assert mapped.adjust(other) == other


def test_retention_is_overridden_as_properties() -> None:
    policy = Retention(snapshots=SnapshotRetention(timedelta(days=5), None))
    before = {"history.expire.min-snapshots-to-keep": "3"}
    table = Table(TableName(("bronze",), "t"), Schema(), properties=before)
    adjusted = names(TableOverride("*", PLACE, retention=policy)).adjust(table)
    assert adjusted.properties == {"history.expire.max-snapshot-age-ms": "432000000"}


def test_one_catalog_for_both_clients() -> None:
    environment = Environment("prod", SQLITE, spark=SparkConfig(conf={"spark.x": "1"}))
    read = catalog_settings(environment)
    assert (read.name, read.type) == ("lake", "sqlite")
    assert "/data/catalog.db" in (read.uri or "")
    started = spark_settings(environment)
    assert started.catalog_name == "lake"
    assert "/data/catalog.db" in started.catalog_conf["uri"]
    assert started.conf == {"spark.x": "1"}
    assert started.is_local
    assert spark_settings(Environment("prod", SQLITE, spark=SparkConfig("yarn"))).master == "yarn"


def test_secrets_reach_the_clients_and_nobody_else() -> None:
    catalog = CatalogDescription("lake", "rest", "https://lake", "s3://lake", credential=Secret("id:hush"))
    environment = Environment("prod", catalog)
    assert catalog_settings(environment).properties["credential"] == "id:hush"
    assert spark_settings(environment).catalog_conf["credential"] == "id:hush"
    assert "hush" not in repr(catalog_settings(environment))
    assert "hush" not in repr(environment)
