"""What the kinds of change of tables say in Spark SQL, on real tables, against what they foretell.

Every comparison is of the table read back from its metadata with the fold of the changes: spec ids and
partition field ids included.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import Change, SqlStatement
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.reference_sql import CURRENT_SNAPSHOT
from icemigrate.changes.rename_table import RenameTable
from icemigrate.frozen import replace
from icemigrate.iceberg import validation
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partitioning import (
    DESC,
    NULLS_FIRST,
    NULLS_LAST,
    VOID,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    Transform,
)
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import DESCRIPTION_PROPERTY, DISTRIBUTION_PROPERTY, Ref, Table
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import DetectedChange, find_difference, remaining_differences
from icemigrate.spark_sql.identifiers import namespace_sql
from tests.support.small_tables import field_at, ids, table, with_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse

BY_THE_CATALOG = ("owner", "write.parquet.compression-codec")
VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])
COLUMNS = "id: required long, ts: timestamptz, kind: string, meta: struct<`x y`: int, at: timestamp>"


@dataclass
class Lake:
    """Runs changes in a namespace of its own and reads tables back."""

    spark: SparkSession
    warehouse: Warehouse
    namespace: str
    numbers: Iterator[int]

    def name(self) -> TableName:
        return TableName((self.namespace,), f"t{next(self.numbers)}")

    def read(self, name: TableName) -> Table:
        with sqlite3.connect(self.warehouse.database) as rows:
            (location,) = rows.execute(
                "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?",
                (".".join(name.namespace), name.name),
            ).fetchone()
        return table_from_json(json.loads(Path(location.removeprefix("file:")).read_text()), name)

    def run(self, *changes: DetectedChange) -> None:
        for step in as_steps(changes, self.warehouse.catalog):
            for statement in step.statements:
                assert isinstance(statement, SqlStatement), statement
                self.spark.sql(statement.text)

    def make(self, declared: Table, partition_afterwards: bool = False) -> Table:
        """Create a table, hold it against what was foretold, and give it as it is."""
        name = self.name()
        change = CreateTable(name, declared, partition_afterwards)
        blank = Table(name, Schema(), format_version=declared.format_version)
        assert list(change.problems(blank)) == []
        assert [b for b in validation.find_violations(change.apply(blank), None) if not b.is_warning] == []
        self.run(DetectedChange(change, blank))
        return self.check(change.apply(blank))

    def go(self, before: Table, target: Table) -> Table:
        """Lead a table to another state, hold it against what was foretold, and give it as it is."""
        found = find_difference(before, target, CHANGE_KINDS)
        assert remaining_differences(found, CHANGE_KINDS) == ()
        self.run(*found.found)
        return self.check(found.after)

    def check(self, foretold: Table) -> Table:
        there = self.read(foretold.name)
        assert facts(there, foretold) == facts(foretold, foretold)
        return there

    def insert(self, name: TableName, values: str) -> Table:
        self.spark.sql(f"INSERT INTO {self.warehouse.catalog}.{name} VALUES ({values})")
        return self.read(name)


def facts(there: Table, declared: Table) -> dict[str, Any]:
    """What is compared: everything but what the catalog gives by itself."""
    extra = {key for key in BY_THE_CATALOG if key not in declared.properties}
    return {
        "columns": there.schema.fields,
        "identifier": there.schema.identifier_ids,
        "spec": there.spec,
        "older specs": there.older_specs,
        "order": there.sort_order,
        "older orders": there.older_orders,
        "properties": {k: v for k, v in sorted(there.properties.items()) if k not in extra},
        "format": there.format_version,
        "last ids": (there.last_column_id, there.last_partition_id),
        "location": there.location if declared.location else None,
        "refs": there.refs,
    }


@pytest.fixture
def lake(spark: SparkSession, warehouse: Warehouse, namespace: str) -> Lake:
    return Lake(spark, warehouse, namespace, count(1))


def partitioned(base: Table, *terms: tuple[str, str, str]) -> Table:
    """The table under a spec of (transform, source, name), as a declaration has it."""
    fields = tuple(
        PartitionField((field_at(base.schema, source).id,), Transform.parse(transform), name, -1 - i)
        for i, (transform, source, name) in enumerate(terms)
    )
    return replace(base, spec=PartitionSpec(fields))


def sorted_by(base: Table, *fields: SortField) -> Table:
    return replace(base, sort_order=SortOrder(fields))


def by(base: Table, path: str, **rest: Any) -> SortField:
    return SortField((field_at(base.schema, path).id,), **rest)


def with_properties(base: Table, **changed: str | None) -> Table:
    properties: Mapping[str, str | None] = {
        **base.properties,
        **{key.replace("__", "-").replace("_", "."): value for key, value in changed.items()},
    }
    return replace(base, properties={k: v for k, v in properties.items() if v is not None})


def identified_by(base: Table, paths: str) -> Table:
    return replace(base, schema=replace(base.schema, identifier_ids=frozenset(ids(base.schema, paths))))


def distributed(base: Table, mode: str | None) -> Table:
    properties = {k: v for k, v in base.properties.items() if k != DISTRIBUTION_PROPERTY}
    return replace(base, properties={**properties, **({} if mode is None else {DISTRIBUTION_PROPERTY: mode})})


# Creation


@VERSIONS
def test_creation(lake: Lake, version: int) -> None:
    declared = table(
        "`odd ``name`: required string 'it''s ${odd} \\ \"é\"', id: required long,"
        " nested: required struct<key: required int 'deep', list: list<struct<a: date, b: decimal(9,2)>>>,"
        " m: map<string, struct<x: double, y: binary>>, flag: boolean, at: timestamp, tz: timestamptz,"
        " f: float",
        format_version=version,
        identifier="id, nested.key",
    )
    declared = partitioned(declared, ("day", "tz", "tz_day"), ("bucket[16]", "id", "id_bucket"))
    declared = sorted_by(
        declared,
        by(declared, "`odd ``name`"),
        by(declared, "nested.key", direction=DESC, null_order=NULLS_LAST),
        by(declared, "tz", transform=Transform("month"), null_order=NULLS_LAST),
    )
    properties = {
        DESCRIPTION_PROPERTY: "it's\n${a} table\u202e\U000e0041\u200b\xa0",
        "a.b": "'\x1bx'",
        DISTRIBUTION_PROPERTY: "hash",
    }
    made = lake.make(replace(declared, properties=properties))
    assert made.spec.id == 0


@VERSIONS
def test_creation_with_names_of_its_own(lake: Lake, version: int) -> None:
    declared = table(COLUMNS, format_version=version)
    made = lake.make(
        partitioned(
            declared, ("day", "ts", "on_day"), ("identity", "meta.`x y`", "xy"), ("truncate[4]", "kind", "k")
        )
    )
    assert [f.id for f in made.spec.fields] == [1000, 1001, 1002]
    assert (made.spec.id, len(made.older_specs)) == (3, 3)


def test_creation_elsewhere_partitioned_at_once_and_afterwards(lake: Lake, tmp_path: Path) -> None:
    declared = partitioned(table(COLUMNS), ("identity", "id", "id"))
    location = f"file:{tmp_path}/own"
    made = lake.make(replace(declared, location=location))
    assert (made.location, made.spec.id) == (location, 0)
    assert lake.make(declared, partition_afterwards=True).spec.id == 1


def test_creation_under_nested_names_that_the_statement_gives(lake: Lake) -> None:
    declared = table(COLUMNS)
    made = lake.make(
        partitioned(declared, ("hour", "meta.at", "meta.at_hour"), ("identity", "meta.`x y`", "meta.x y"))
    )
    assert made.spec.id == 0


# Whole tables


def test_rename_and_drop(lake: Lake) -> None:
    made = lake.make(table(COLUMNS))
    other = (f"{lake.namespace}_other",)
    lake.spark.sql(f"CREATE NAMESPACE {namespace_sql(lake.warehouse.catalog, other)}")
    renamed = RenameTable(made.name, TableName(other, "odd name"))
    lake.run(DetectedChange(renamed, made))
    there = lake.check(renamed.apply(made))
    dropped = DropTable(there.name, TableName((f"{lake.namespace}_trash",), "a__t__0007"))
    lake.run(DetectedChange(dropped, there))
    assert lake.check(dropped.apply(there)).uuid == made.uuid


# Partitioning


@VERSIONS
def test_partition_fields_come_and_go(lake: Lake, version: int) -> None:
    t = lake.make(table(COLUMNS, format_version=version))
    t = lake.go(
        t, partitioned(t, ("identity", "kind", "kind"), ("day", "ts", "ts_day"), ("bucket[16]", "id", "s"))
    )
    t = lake.go(t, partitioned(t, ("day", "ts", "ts_day"), ("bucket[16]", "id", "s")))
    t = lake.go(
        t, partitioned(t, ("bucket[16]", "id", "s"), ("day", "ts", "ts_day"), ("identity", "kind", "kind"))
    )
    t = lake.go(t, partitioned(t))
    t = lake.go(t, partitioned(t, ("month", "ts", "period"), ("identity", "meta.`x y`", "meta.x y")))
    t = lake.go(t, partitioned(t, ("year", "ts", "period"), ("identity", "meta.`x y`", "meta.x y")))
    t = lake.go(t, partitioned(t, ("year", "ts", "period")))
    t = lake.go(t, partitioned(t, ("month", "ts", "period")))
    lake.insert(t.name, "1, now(), 'a', named_struct('x y', 1, 'at', timestamp_ntz'2024-01-01 00:00:00')")


@VERSIONS
def test_partition_fields_are_renamed(lake: Lake, version: int) -> None:
    t = lake.make(table(COLUMNS, format_version=version))
    t = lake.go(t, partitioned(t, ("identity", "kind", "kind"), ("day", "ts", "a"), ("bucket[4]", "id", "b")))
    numbers = [f.id for f in t.spec.fields]
    t = lake.go(t, partitioned(t, ("identity", "kind", "sort"), ("day", "ts", "b"), ("bucket[4]", "id", "a")))
    assert [(f.id, f.name) for f in t.spec.fields] == list(zip(numbers, ("sort", "b", "a"), strict=True))
    # A field under the name of a void one: version 1 moves that out of the way.
    t = lake.go(t, partitioned(t, ("day", "ts", "b"), ("bucket[4]", "id", "a")))
    t = lake.go(t, partitioned(t, ("day", "ts", "sort"), ("bucket[4]", "id", "a")))
    assert [f.name for f in t.spec.fields if f.transform == VOID] == (["sort_1000"] if version == 1 else [])


@VERSIONS
def test_a_partition_name_follows_its_column_where_asked(lake: Lake, version: int) -> None:
    t = lake.make(table("id: long, region: string, d: date", format_version=version))
    t = lake.go(t, partitioned(t, ("identity", "region", "region"), ("day", "d", "d_day")))
    target = with_columns(t, "id: long, sales_region: string, d: date", {"sales_region": "region"})
    named = ("identity", "sales_region", "sales_region")
    t = lake.go(t, partitioned(target, named, ("day", "d", "d_day")))
    assert [f.id for f in t.spec.fields] == [1000, 1001]
    # The earlier spec goes on blocking the name, in Iceberg as in the rules.
    target = with_columns(t, "id: long, sales_region: string, d: date, region: int")
    assert [b.rule for b in validation.find_violations(target, t)] == ["partition-name-is-a-column"]
    with pytest.raises(Exception, match="Cannot create identity partition sourced from different field"):
        lake.run(*find_difference(t, target, CHANGE_KINDS).found)
    # It is free again when the source is gone.
    if version > 1:
        t = lake.go(t, partitioned(with_columns(t, "id: long, d: date"), ("day", "d", "d_day")))
        lake.go(t, with_columns(t, "id: long, d: date, region: int"))


def test_a_source_is_dropped_and_another_added(lake: Lake) -> None:
    t = lake.make(table("id: long, a: string, b: string"))
    t = lake.go(t, partitioned(t, ("truncate[2]", "a", "part")))
    target = with_columns(t, "id: long, b: string, c: timestamp")
    t = lake.go(t, partitioned(target, ("hour", "c", "part"), ("identity", "b", "b")))
    assert [f.id for f in t.spec.fields] == [1001, 1002]
    lake.insert(t.name, "1, 'b', timestamp_ntz'2024-01-01 00:00:00'")


def test_a_term_names_its_field_where_a_column_has_the_name(lake: Lake) -> None:
    t = lake.make(table("id: long, kind: string"))
    lake.spark.sql(
        f"ALTER TABLE {lake.warehouse.catalog}.{t.name} ADD PARTITION FIELD truncate(2, kind) AS kind"
    )
    t = lake.read(t.name)
    t = lake.go(t, partitioned(t, ("truncate[4]", "kind", "kind_4")))
    t = lake.go(t, partitioned(t))
    assert t.spec.fields == ()


def test_upgraded_void_fields(lake: Lake) -> None:
    t = lake.make(table(COLUMNS, format_version=1))
    t = lake.go(t, partitioned(t, ("identity", "kind", "kind"), ("day", "ts", "d")))
    t = lake.go(t, partitioned(t, ("day", "ts", "d")))
    t = lake.go(t, replace(t, format_version=2))
    t = lake.go(t, partitioned(t, ("day", "ts", "d"), ("identity", "kind", "kind")))
    assert [f.name for f in t.spec.fields] == ["kind_1000", "d", "kind"]


# Order and distribution

MODES = (None, "none", "hash", "range")


@pytest.mark.parametrize("before", MODES)
def test_order_meets_distribution(lake: Lake, before: str | None) -> None:
    t = lake.make(distributed(table(COLUMNS), before))
    for after in MODES:
        for order in (
            (by(t, "id"),),
            (by(t, "id", null_order=NULLS_LAST), by(t, "kind", direction=DESC)),
            (),
        ):
            t = lake.go(t, distributed(sorted_by(t, *order), after))
        t = lake.go(t, distributed(t, before))


def test_an_order_makes_way(lake: Lake) -> None:
    t = lake.make(table("id: long, a: string, b: date"))
    t = lake.go(t, sorted_by(t, by(t, "a"), by(t, "id", direction=DESC, null_order=NULLS_FIRST)))
    target = with_columns(t, "id: long, b: date")
    t = lake.go(t, sorted_by(target, by(t, "id"), by(t, "b", transform=Transform("month"))))
    assert t.sort_order.id == 2
    target = with_columns(t, "id: long, c: int")
    t = lake.go(t, distributed(sorted_by(target, by(target, "c")), "range"))
    assert [o.id for o in t.older_orders] == [0, 1, 2]
    lake.insert(t.name, "1, 2")


# Properties, description, identifier, format


@VERSIONS
def test_properties_description_and_format(lake: Lake, version: int) -> None:
    t = lake.make(table(COLUMNS, format_version=version, properties={"one": "1", "two": "2"}))
    changed = {DESCRIPTION_PROPERTY: "it's\\n a ${table}\n", "two": "'zwei'", "thr ee": "3", "four": ""}
    t = lake.go(t, replace(t, properties={**t.properties, "one": "eins", **changed}))
    kept = {k: v for k, v in t.properties.items() if k not in ("one", "four", DESCRIPTION_PROPERTY)}
    t = lake.go(t, replace(t, properties=kept))
    if version < 3:
        t = lake.go(t, replace(t, format_version=3))
        assert (t.format_version, "format-version" in t.properties) == (3, False)


@VERSIONS
def test_identifier_fields(lake: Lake, version: int) -> None:
    columns = "id: required long, `a.b`: required string, s: required struct<x: required int, y: int>"
    t = lake.make(table(columns, format_version=version))
    t = lake.go(t, identified_by(t, "id, `a.b`, s.x"))
    target = with_columns(
        t, "id: required long, u: required struct<z: required int, y: int>", {"u": "s", "u.z": "s.x"}
    )
    t = lake.go(t, identified_by(target, "id, u.z"))
    t = lake.go(t, identified_by(t, "u.z"))
    target = with_columns(t, "id: required long, u: required struct<z: int, y: int>")
    t = lake.go(t, identified_by(target, ""))
    t = lake.go(t, identified_by(t, "id"))
    assert len(t.schema.identifier_ids) == 1


# References


def test_references(lake: Lake) -> None:
    minute = 60_000
    t = lake.make(table("id: long"))
    t = lake.insert(t.name, "1")
    assert t.snapshot is not None
    tag = Ref("tag", CURRENT_SNAPSHOT, 10 * 24 * 60 * minute)
    branch = Ref("branch", CURRENT_SNAPSHOT, 90 * minute, 5 * 60 * minute, 3)
    refs = {**t.refs, "release-1": tag, "odd `name": replace(tag, max_ref_age_ms=None), "audit": branch}
    t = lake.go(t, replace(t, refs=refs))
    t = lake.insert(t.name, "2")
    assert t.refs["audit"].snapshot_id != t.snapshot.id if t.snapshot else False
    here = replace(t.refs["release-1"], snapshot_id=t.snapshot.id if t.snapshot else 0)
    t = lake.go(t, replace(t, refs={"main": t.refs["main"], "release-1": here}))
    assert sorted(t.refs) == ["main", "release-1"]


def test_a_branch_of_an_empty_table_is_made_with_it(lake: Lake) -> None:
    name = lake.name()
    change = CreateTable(name, replace(table("id: long"), refs={"dev": Ref("branch", CURRENT_SNAPSHOT)}))
    lake.run(DetectedChange(change, Table(name, Schema())))
    there = lake.read(name)
    assert (list(there.refs), there.snapshot) == (["dev"], None)


# What the rules refuse, Spark refuses too, or regrets


def _refused(change: Callable[[Table], Table]) -> Callable[[Lake], None]:
    def test(lake: Lake) -> None:
        t = lake.make(partitioned(table(COLUMNS), ("day", "ts", "day")))
        target = change(t)
        assert [b for b in validation.find_violations(target, t) if not b.is_warning] != []
        found: list[Change] = [f.change for f in find_difference(t, target, CHANGE_KINDS).found]
        assert found != []
        with pytest.raises(Exception, match=r"(?s).+"):
            lake.run(*find_difference(t, target, CHANGE_KINDS).found)

    return test


test_a_column_named_like_a_partition_field = _refused(lambda t: with_columns(t, f"{COLUMNS}, day: date"))
test_a_transform_of_another_type = _refused(
    lambda t: partitioned(t, ("day", "ts", "day"), ("hour", "kind", "h"))
)
test_an_optional_identifier = _refused(lambda t: identified_by(t, "kind"))
test_an_order_by_a_struct = _refused(lambda t: sorted_by(t, by(t, "meta")))
test_a_reserved_property = _refused(lambda t: replace(t, properties={**t.properties, "sort-order": "id"}))


@pytest.mark.parametrize("live", [True, False])
def test_a_void_fields_source_must_stay(lake: Lake, live: bool) -> None:
    t = lake.make(table("id: long, kind: string, d: date", format_version=1))
    t = lake.go(t, partitioned(t, ("identity", "kind", "kind"), ("identity", "d", "d")))
    t = lake.go(t, partitioned(t, *([("identity", "d", "d")] if live else [])))
    target = with_columns(t, "id: long, d: date")
    (breach,) = validation.find_violations(target, t)
    assert (breach.rule, breach.is_warning) == ("void-partition-source-missing", True)
    t = lake.go(t, target)
    if not live:
        t = lake.insert(t.name, "1, date'2024-01-01'")
        target = partitioned(t, ("identity", "id", "id"))
        after = find_difference(t, target, CHANGE_KINDS).after
        (breach,) = validation.find_violations(after, t)
        assert "cannot write to the table" in breach.message
        t = lake.go(t, target)
    with pytest.raises(Exception, match="Cannot build accessor"):
        lake.insert(t.name, "1, date'2024-01-01'")
