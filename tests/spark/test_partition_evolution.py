"""Every transform and every way from one partitioning to another on real tables: done, undone, done again.

Each line of the table below is a table of its own; all of them are changed by the same migrations, with rows
written before, between and after.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.files.write.migration_entries import format_migration_file
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import FilesBySpec, FileTotals, OldSpecFiles, old_spec_files
from icemigrate.iceberg.partitioning import VOID, Definition
from icemigrate.iceberg.table import Table
from icemigrate.spark_sql.identifiers import table_sql
from tests.support.undo_project import UndoWorld

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "id": "int",
    "n": "long",
    "region": "string",
    "price": "decimal(9,2)",
    "raw": "binary",
    "d": "date",
    "at": "timestamp",
    "tz": "timestamptz",
    "s": "struct<k: long, at: timestamp>",
}
VALUES = (
    "CAST({0} AS INT), CAST({0} AS BIGINT) * 1000, 'region-{0}', CAST({0} + 0.25 AS DECIMAL(9, 2)), "
    "CAST('b{0}' AS BINARY), DATE '2026-01-0{0}', TIMESTAMP_NTZ '2026-02-0{0} 1{0}:30:00', "
    "TIMESTAMP '2026-03-0{0} 1{0}:30:00', "
    "named_struct('k', CAST({0} AS BIGINT), 'at', TIMESTAMP_NTZ '2026-04-0{0} 01:00:00')"
)
Terms = list[str]


@dataclass(frozen=True)
class Way:
    """The partitioning of one table at its creation, after the second and after the third migration."""

    name: str
    first: Terms
    second: Terms
    third: Terms


WAYS = [
    Way("finer_buckets", ["bucket(16, id)"], ["bucket(32, id)"], ["bucket(16, id)"]),
    Way("finer_times", ["day(at)"], ["hour(at)"], ["day(at)"]),
    Way("coarser_times", ["hour(tz)"], ["month(tz)"], ["year(tz)"]),
    Way("of_dates", ["year(d)"], ["month(d)"], ["day(d)"]),
    Way("dropped_and_again", ["region", "bucket(4, n)"], ["bucket(4, n)"], ["bucket(4, n)", "region"]),
    Way("dropped_all", ["day(at)", "region"], [], ["day(at)", "region"]),
    Way("come_late", [], ["truncate(2, region)"], ["truncate(2, region)", "truncate(10, id)"]),
    Way(
        "several_on_one",
        ["id", "bucket(4, id)"],
        ["id", "bucket(4, id)", "truncate(10, id)"],
        ["bucket(8, id)", "truncate(100, id)"],
    ),
    Way("two_buckets", ["bucket(4, id)"], ["bucket(4, id)", "bucket(8, id)"], ["bucket(8, id)"]),
    Way("day_beside_hour", ["day(at)"], ["day(at)", "hour(at)"], ["hour(at)"]),
    Way("time_and_bucket", ["day(at)", "bucket(4, at)"], ["hour(at)", "bucket(8, at)"], ["bucket(8, at)"]),
    Way("renamed", ["day(at) as day"], ["day(at) as trading_day"], ["day(at) as day"]),
    Way(
        "swapped_names",
        ["bucket(4, id) as a", "bucket(4, n) as b"],
        ["bucket(4, id) as b", "bucket(4, n) as a"],
        ["bucket(4, n) as a"],
    ),
    Way("of_a_struct", ["bucket(4, s.k)"], ["bucket(8, s.k)", "day(s.at)"], ["truncate(10, s.k)"]),
    Way("of_money", ["truncate(50, price)"], ["price"], ["bucket(4, price)"]),
    Way("of_bytes", ["truncate(1, raw)"], ["bucket(4, raw)"], ["raw"]),
    Way("identities", ["id", "d"], ["region", "n"], ["id", "at"]),
]
WAYS_WITH_VOIDS = [
    Way("kept_bucket_name", ["bucket(16, id) as b"], ["bucket(32, id) as b"], ["bucket(16, n) as b"]),
    Way(
        "renamed_and_replaced",
        ["bucket(4, id) as a", "day(at) as b"],
        ["bucket(4, id) as b", "hour(at) as a"],
        ["day(at) as b"],
    ),
]
"""Format version 1 alone gives the name of a dropped field to another one without harm."""


@pytest.mark.parametrize(
    ("format_version", "ways"),
    # Version 3 has the specs of version 2: a few do.  In version 1 it is the voids that matter.
    [(1, [*WAYS[::2], *WAYS_WITH_VOIDS]), (2, WAYS), (3, WAYS[1::4])],
    ids=["v1", "v2", "v3"],
)
def test_every_way_is_gone_and_gone_back(
    tmp_path: Path, spark: SparkSession, format_version: int, ways: list[Way]
) -> None:
    lake = Lake(UndoWorld(tmp_path, spark), ways)
    lake.apply("0001", [_made(way, format_version) for way in ways])
    lake.write(1)
    first = lake.live()
    lake.has([way.first for way in ways])
    lake.apply("0002", [_entry(way, way.second) for way in ways])
    second = lake.live()
    lake.has([way.second for way in ways])
    lake.write(2)
    lake.apply("0003", [_entry(way, way.third) for way in ways])
    lake.tells_what_lies_the_old_way()
    third = lake.live()
    lake.has([way.third for way in ways])
    voids = {f.transform == VOID for table in lake.tables() for f in table.spec.fields}
    assert (True in voids) is (format_version == 1)

    lake.world.project.rollback(spark=lake.world.spark)
    assert lake.live() == second
    lake.world.project.rollback(spark=lake.world.spark)
    assert lake.live() == first
    lake.write(3)
    for version, live in (("0002", second), ("0003", third)):
        lake.world.project.apply(lake.world.project.plan(redo=version), spark=lake.world.spark)
        assert lake.live() == live
    assert lake.world.project.plan().is_empty
    lake.write(4)
    lake.reads_back(4)


@dataclass
class Lake:
    """The tables of these ways, and what can be asked of them."""

    world: UndoWorld
    ways: list[Way]
    shares: dict[TableName, OldSpecFiles | None] = field(default_factory=dict)

    @property
    def names(self) -> list[TableName]:
        return [TableName.parse(f"db.{way.name}") for way in self.ways]

    def tables(self) -> list[Table]:
        return [self.world.actual(name) for name in self.names]

    def apply(self, version: str, entries: list[dict[str, Any]]) -> None:
        self.world.file(version, format_migration_file(entries))
        planned = self.world.project.plan()
        self.shares = {t.declared: t.old_files for m in planned.plan.migrations for t in m.tables}
        self.world.project.apply(planned, spark=self.world.spark)

    def tells_what_lies_the_old_way(self) -> None:
        """What the plan foretold is what the files are by Spark afterwards, and what the status says."""
        status = {t.table: t.old_files for t in self.world.project.status().tables}
        assert len(set(self.shares.values())) > 1
        later = self.world.project.plan()
        assert later.is_empty, "and still it is said of every table of which files lie so"
        lying = {one.table: one.old_files for one in later.old_partition_tables}
        assert lying == {name: share for name, share in status.items() if share is not None}
        for name, table in zip(self.names, self.tables(), strict=True):
            rows = self.world.spark.sql(
                "SELECT spec_id, count(*), sum(file_size_in_bytes) FROM "
                f"{table_sql(self.world.catalog, name)}.files GROUP BY spec_id"
            ).collect()
            portions = {spec: FileTotals(files, size) for spec, files, size in rows}
            share = old_spec_files(FilesBySpec(portions), table, table.spec)
            assert self.shares[name] == status[str(name)] == (share if share.files else None), name

    def live(self) -> list[set[Definition]]:
        """What each table is partitioned by, without order."""
        return _live(self.tables())

    def has(self, terms: list[Terms]) -> None:
        """The catalog has what the history says, in as many fields as the files say."""
        declared = self.world.declared()
        assert list(map(len, self.live())) == list(map(len, terms))
        assert self.live() == _live([declared[name] for name in self.names])

    def write(self, number: int) -> None:
        """A row of this number arrives in every table."""
        for name in self.names:
            self.world.sql(f"INSERT INTO @ SELECT {VALUES.format(number)}", name)

    def reads_back(self, last: int) -> None:
        """Every row of every table is there, whatever it was written under, and found by its values."""
        found = " UNION ALL ".join(
            f"SELECT '{name.name}' AS name, id, n, region, s.k FROM {table_sql(self.world.catalog, name)}"
            " WHERE id > 1 OR region = 'region-1' AND at = TIMESTAMP_NTZ '2026-02-01 11:30:00' AND s.k = 1"
            " AND price = 1.25 AND d = DATE '2026-01-01' AND raw = CAST('b1' AS BINARY)"
            for name in self.names
        )
        rows = sorted(tuple(row) for row in self.world.spark.sql(found).collect())
        wanted = [(n.name, i, i * 1000, f"region-{i}", i) for n in self.names for i in range(1, last + 1)]
        assert rows == sorted(wanted)


def _live(tables: Iterable[Table]) -> list[set[Definition]]:
    return [{f.definition for f in table.spec.live} for table in tables]


def _made(way: Way, format_version: int) -> dict[str, Any]:
    columns = [{"name": name, "type": type_} for name, type_ in COLUMNS.items()]
    return {**_entry(way, way.first), "columns": columns, "format_version": format_version}


def _entry(way: Way, terms: Terms) -> dict[str, Any]:
    return {"name": f"db.{way.name}", "partition_by": terms}
