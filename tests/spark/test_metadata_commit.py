from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.errors import EngineError
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partitioning import PartitionField, PartitionSpec, SortField, SortOrder, Transform
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Ref, Table
from icemigrate.iceberg.types import Field, Fixed, List, Primitive, Struct
from icemigrate.metadata_engine.engine import MetadataEngine
from icemigrate.metadata_engine.open_store import open_table_store
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.java_errors import TRIES
from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.spark.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse


@pytest.fixture
def engine(spark: SparkSession, warehouse: Warehouse) -> SparkEngine:
    return SparkEngine(spark, warehouse.catalog)


@pytest.fixture
def name(spark: SparkSession, namespace: str) -> TableName:
    spark.sql(f"CREATE TABLE local.{namespace}.t (id bigint NOT NULL, name string) USING iceberg")
    return TableName((namespace,), "t")


def with_field(table: Table, name: str, type_: Primitive, required: bool = False) -> Table:
    new = Field(table.last_column_id + 1, name, type_, required)
    schema = replace(table.schema, fields=(*table.schema.fields, new))
    return replace(table, schema=schema, last_column_id=new.id)


def with_property(table: Table, key: str, value: str) -> Table:
    return replace(table, properties={**table.properties, key: value})


@pytest.mark.parametrize("version", [1, 2, 3])
def test_one_commit_says_all_that_a_fold_changes(
    engine: SparkEngine, spark: SparkSession, namespace: str, version: int
) -> None:
    spark.sql(
        f"CREATE TABLE local.{namespace}.t (id bigint, ts timestamp_ntz) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '{version}', 'old' = '1', 'kept' = '2')"
    )
    name = TableName((namespace,), "t")
    spark.sql(f"INSERT INTO local.{namespace}.t VALUES (1, TIMESTAMP_NTZ '2026-01-01 00:00:00')")

    def fold(table: Table) -> Table:
        table = with_field(table, "trace", Primitive("uuid"))
        fields = tuple(replace(f, required=f.id == 1) for f in table.schema.fields)
        assert table.snapshot is not None
        return replace(
            table,
            schema=replace(table.schema, fields=fields, identifier_ids=frozenset({1})),
            spec=PartitionSpec((PartitionField((2,), Transform("day"), "day", 1000),)),
            sort_order=SortOrder((SortField((1,), direction="desc", null_order="nulls-last"),)),
            properties={"kept": "2", "new": "3"},
            refs={**table.refs, "tagged": Ref("tag", table.snapshot.id, max_ref_age_ms=86_400_000)},
            last_partition_id=1000,
        )

    before = engine.table(name)
    assert before is not None
    after = engine.commit(name, fold)
    wanted = fold(before)
    assert after.schema.fields == wanted.schema.fields
    assert after.schema.identifier_ids == wanted.schema.identifier_ids
    assert after.spec.fields == wanted.spec.fields
    assert after.sort_order.fields == wanted.sort_order.fields
    assert after.properties == wanted.properties
    assert after.refs == wanted.refs
    assert after.last_column_id == 3
    assert spark.table(f"local.{namespace}.t").columns == ["id", "ts", "trace"]
    spark.sql(f"INSERT INTO local.{namespace}.t VALUES (2, TIMESTAMP_NTZ '2026-01-02 00:00:00', NULL)")
    assert spark.table(f"local.{namespace}.t").count() == 2
    gone = engine.commit(name, lambda t: replace(t, refs={k: r for k, r in t.refs.items() if k != "tagged"}))
    assert "tagged" not in gone.refs


def test_a_format_version_goes_up_in_the_commit_that_needs_it(engine: SparkEngine, name: TableName) -> None:
    def fold(table: Table) -> Table:
        return replace(with_field(table, "at", Primitive("timestamp_ns")), format_version=3)

    after = engine.commit(name, fold)
    assert after.format_version == 3
    assert after.schema.fields[-1] == Field(3, "at", Primitive("timestamp_ns"))


def test_a_fold_that_changes_nothing_commits_nothing(engine: SparkEngine, name: TableName) -> None:
    before = engine.metadata_json(name)
    engine.commit(name, lambda table: table)
    assert engine.metadata_json(name) == before


def test_a_commit_that_another_one_overtook_is_folded_anew(engine: SparkEngine, name: TableName) -> None:
    seen: list[int] = []

    def fold(table: Table) -> Table:
        seen.append(table.last_column_id)
        if len(seen) == 1:
            engine.commit(name, lambda t: with_field(t, "theirs", Primitive("int")))
        return with_field(table, "ours", Primitive("int"))

    after = engine.commit(name, fold)
    assert seen == [2, 3]
    assert [(f.id, f.name) for f in after.schema.fields][2:] == [(3, "theirs"), (4, "ours")]


def test_a_writer_that_is_always_faster_wins(engine: SparkEngine, name: TableName) -> None:
    tries: list[int] = []

    def fold(table: Table) -> Table:
        tries.append(len(tries))
        engine.commit(name, lambda t: with_property(t, "theirs", str(len(tries))))
        return with_property(table, "ours", "x")

    with pytest.raises(EngineError, match="another writer changed"):
        engine.commit(name, fold)
    assert len(tries) == TRIES
    table = engine.table(name)
    assert table is not None
    assert "ours" not in table.properties


def test_a_bug_in_a_fold_is_not_told_as_a_fault_of_spark(engine: SparkEngine, name: TableName) -> None:
    def fold(table: Table) -> Table:
        raise KeyError("oops")

    with pytest.raises(KeyError):
        engine.commit(name, fold)


def test_what_is_not_there_is_none_to_read_and_a_fault_to_change(engine: SparkEngine, namespace: str) -> None:
    absent = TableName((namespace,), "absent")
    assert engine.table(absent) is None
    assert engine.table(TableName(("no such namespace",), "t")) is None
    with pytest.raises(EngineError, match="no longer exists"):
        engine.commit(absent, lambda table: table)


def test_a_tag_of_a_table_without_a_snapshot_refers_to_an_empty_one(
    engine: SparkEngine, name: TableName
) -> None:
    engine.commit(name, lambda t: replace(t, refs={"x": Ref("tag", -1)}))
    table = engine.table(name)
    assert table is not None
    assert {key: ref.kind for key, ref in table.refs.items()} == {"x": "tag"}
    assert table.snapshot is None


def test_a_table_of_types_without_words_in_spark_is_made(engine: SparkEngine, namespace: str) -> None:
    name = TableName((namespace,), "odd name")
    struct = Struct((Field(5, "x", Primitive("uuid"), True),))
    fields = (
        Field(1, "a", Primitive("time"), True, "The time"),
        Field(2, "b", Fixed(4)),
        Field(3, "c", List(Field(4, "element", struct, True))),
    )
    spec = PartitionSpec((PartitionField((1,), Transform("identity"), "a", 1000),))
    order = SortOrder((SortField((1,)),), 1)
    table = Table(
        name,
        Schema(fields, frozenset({1})),
        spec,
        order,
        {"k": "v"},
        last_column_id=5,
        last_partition_id=1000,
    )
    made = engine.create(table)
    assert made.schema.fields == fields
    assert made.schema.identifier_ids == {1}
    assert made.spec.fields == spec.fields
    assert made.sort_order.fields == order.fields
    assert made.properties["k"] == "v"
    assert made.format_version == 2
    with pytest.raises(EngineError, match="already exists"):
        engine.create(table)


def test_a_table_is_made_again_under_the_ids_that_it_had(engine: SparkEngine, namespace: str) -> None:
    name = TableName((namespace,), "again")
    fields = (Field(3, "a", Primitive("int")), Field(7, "b", Primitive("int"), True))
    order = SortOrder((SortField((7,)),), 1)
    made = engine.create(Table(name, Schema(fields), sort_order=order, format_version=3, last_column_id=9))
    assert made.schema.fields == fields
    assert made.sort_order.fields == order.fields
    assert made.last_column_id == 9
    assert made.format_version == 3


def test_a_session_that_caches_tables_shows_them_as_they_are(
    engine: SparkEngine, name: TableName, warehouse: Warehouse
) -> None:
    conf = {**sqlite_catalog_conf(warehouse.database, warehouse.path), "cache-enabled": "true"}
    caching = SparkEngine(start_spark(SparkSettings(warehouse.catalog, conf)), warehouse.catalog)
    first = caching.table(name)
    engine.commit(name, lambda t: with_field(t, "more", Primitive("int")))
    second = caching.table(name)
    assert first is not None
    assert second is not None
    assert len(second.schema.fields) == len(first.schema.fields) + 1
    after = caching.commit(name, lambda t: with_field(t, "again", Primitive("int")))
    assert after.last_column_id == 4


def test_a_session_that_caches_tables_shows_what_python_commits(
    name: TableName, warehouse: Warehouse, spark: SparkSession
) -> None:
    settings = CatalogSettings(
        warehouse.catalog, "sqlite", uri=str(warehouse.database), warehouse=str(warehouse.path)
    )
    store = open_table_store(settings)
    assert store is not None
    engine = MetadataEngine(store, open_catalog(settings), None)
    conf = {**sqlite_catalog_conf(warehouse.database, warehouse.path), "cache-enabled": "true"}
    session = start_spark(SparkSettings(warehouse.catalog, conf))
    engine.follow(SparkEngine(session, warehouse.catalog))

    def columns(table: TableName) -> list[str]:
        return session.table(f"{warehouse.catalog}.{table}").columns

    assert columns(name) == ["id", "name"]
    engine.commit(name, lambda t: with_field(t, "more", Primitive("int")))
    assert columns(name) == ["id", "name", "more"]
    moved = TableName(name.namespace, "moved")
    engine.rename(name, moved)
    with pytest.raises(AnalysisException):
        columns(name)
    assert columns(moved) == ["id", "name", "more"]


def test_a_namespace_is_made_once(engine: SparkEngine, spark: SparkSession, fresh_name: str) -> None:
    engine.create_namespace((fresh_name,))
    engine.create_namespace((fresh_name,))
    assert (fresh_name,) in [tuple(r) for r in spark.sql("SHOW NAMESPACES IN local").collect()]


def test_a_statement_that_spark_refuses_is_one_sentence(engine: SparkEngine, name: TableName) -> None:
    with pytest.raises(EngineError) as refused:
        engine.sql(f"ALTER TABLE local.{name} DROP COLUMN nothing")
    assert "nothing" in refused.value.message
    assert "\n" not in refused.value.message


def test_references_and_the_location_are_part_of_a_commit(
    engine: SparkEngine, spark: SparkSession, name: TableName
) -> None:
    spark.sql(f"INSERT INTO local.{name} VALUES (1, 'a')")
    branch = Ref(
        "branch", -1, max_ref_age_ms=9_000_000, max_snapshot_age_ms=8_000_000, min_snapshots_to_keep=3
    )
    before = engine.table(name)
    assert before is not None
    assert before.snapshot is not None
    moved = f"{before.location}_moved"
    after = engine.commit(name, lambda t: replace(t, refs={**t.refs, "audit": branch}, location=moved))
    assert after.refs["audit"] == replace(branch, snapshot_id=before.snapshot.id)
    assert after.location == moved
    assert spark.table(f"local.{name}").count() == 1


def test_the_order_can_be_taken_away(engine: SparkEngine, name: TableName) -> None:
    engine.commit(name, lambda t: replace(t, sort_order=SortOrder((SortField((1,)),), 1)))
    after = engine.commit(name, lambda t: replace(t, sort_order=SortOrder()))
    assert after.sort_order == SortOrder()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_second_run_takes_the_tags_over(
    engine: SparkEngine, spark: SparkSession, namespace: str, version: int
) -> None:
    name = TableName((namespace,), "t")
    spark.sql(
        f"CREATE TABLE local.{name} (id int) USING iceberg TBLPROPERTIES ('format-version' = '{version}')"
    )
    spark.sql(f"INSERT INTO local.{name} VALUES (1)")
    first = engine.table(name)
    assert first is not None
    assert first.snapshot is not None
    marker = Marker("p", "0001", "d", "old", before=first.snapshot.id)
    engine.mark(name, marker)
    spark.sql(f"INSERT INTO local.{name} VALUES (2)")
    second = engine.table(name)
    assert second is not None
    assert second.snapshot is not None
    engine.mark(name, replace(marker, checksum="new", before=second.snapshot.id))
    after = engine.table(name)
    assert after is not None
    assert after.refs["icemigrate-p-0001-before"].snapshot_id == second.snapshot.id
    assert after.snapshot == second.snapshot
    tagged = after.refs["icemigrate-p-0001"].snapshot_id
    (checksum,) = spark.sql(
        f"SELECT summary['icemigrate.checksum'] FROM local.{name}.snapshots WHERE snapshot_id = {tagged}"
    ).collect()
    assert tuple(checksum) == ("new",)
    assert spark.sql(f"SELECT * FROM local.{name} VERSION AS OF 'icemigrate-p-0001'").count() == 2
    engine.mark(name, replace(marker, before=12345))
    again = engine.table(name)
    assert again is not None
    assert again.refs["icemigrate-p-0001-before"] == after.refs["icemigrate-p-0001-before"]


def test_tags_outlive_the_expiry_of_snapshots(
    engine: SparkEngine, spark: SparkSession, name: TableName
) -> None:
    spark.sql(f"INSERT INTO local.{name} VALUES (1, 'a')")
    spark.sql(f"ALTER TABLE local.{name} SET TBLPROPERTIES ('history.expire.max-ref-age-ms' = '1')")
    engine.mark(name, Marker("p", "0001", "d", "c"))
    spark.sql(f"INSERT OVERWRITE local.{name} VALUES (2, 'b')")
    spark.sql(f"CALL local.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '2999-01-01')")
    assert spark.sql(f"SELECT id FROM local.{name} VERSION AS OF 'icemigrate-p-0001'").collect()[0].id == 1
