"""Rows of a table's life: each reader of queries gives those of Spark, at every snapshot, tag and branch."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from hypothesis import strategies as st

from icemigrate.commands.adopt_parquet import AdoptionRequest, adopt_parquet
from icemigrate.errors import Mistakes
from icemigrate.table_data.query_tables import query_sql, query_table
from icemigrate.table_data.table_points import ReadPoint
from icemigrate.table_data.table_session import open_tables
from tests.support.compared_rows import compare_rows
from tests.support.deleted_rows import Deleting
from tests.support.random_spark_runs import run
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CREATE = """
    tables:
      - name: db.life
        format_version: FORMAT
        columns:
          - {name: id, type: int}
          - {name: name, type: string}
          - {name: price, type: float}
          - {name: quantity, type: int}
          - {name: exact, type: "decimal(9,2)"}
          - {name: at, type: timestamptz}
          - {name: part, type: "struct<a: int, b: string>"}
          - {name: items, type: "list<struct<k: int, z: string>>"}
          - {name: by_name, type: "map<string, struct<v: int>>"}
        partition_by: ["bucket(4, id)"]
        properties: {write.delete.mode: MODE, write.update.mode: MODE, write.merge.mode: MODE}
"""
LIFE = """\
INSERT INTO @ SELECT /*+ COALESCE(1) */ id, concat('n', id), id / 4, id * 10, id / 8, timestamp'2026-01-01 00:00:00Z' + make_interval(0, 0, 0, id), named_struct('a', cast(id AS int), 'b', concat('b', id)), array(named_struct('k', cast(id AS int), 'z', 'z')), map('x', named_struct('v', cast(id AS int))) FROM range(1, 21)
DELETE FROM @ WHERE id IN (3, 4)
ALTER TABLE @ CREATE TAG narrow
ALTER TABLE @ RENAME COLUMN name TO title
ALTER TABLE @ DROP COLUMN quantity
ALTER TABLE @ ALTER COLUMN id TYPE BIGINT
ALTER TABLE @ ALTER COLUMN price TYPE DOUBLE
ALTER TABLE @ ALTER COLUMN exact TYPE DECIMAL(18,2)
ALTER TABLE @ ADD COLUMN quantity STRING
ALTER TABLE @ RENAME COLUMN part.a TO renamed
ALTER TABLE @ ADD COLUMN part.c DOUBLE
ALTER TABLE @ DROP COLUMN part.b
ALTER TABLE @ ADD COLUMN items.element.y INT
ALTER TABLE @ RENAME COLUMN items.element.k TO kk
ALTER TABLE @ RENAME COLUMN by_name.value.v TO vv
INSERT INTO @ SELECT /*+ COALESCE(1) */ id + 3000000000, concat('t', id), id / 3, id * 1000000000, timestamp'2026-02-01 00:00:00Z' + make_interval(0, 0, 0, id), named_struct('renamed', cast(id AS int), 'c', cast(id AS double)), array(named_struct('kk', cast(id AS int), 'z', 'q', 'y', 5)), map('y', named_struct('vv', cast(id AS int))), concat('q', id) FROM range(21, 31)
ALTER TABLE @ DROP PARTITION FIELD bucket(4, id)
ALTER TABLE @ ADD PARTITION FIELD days(at)
ALTER TABLE @ ADD PARTITION FIELD truncate(2, title)
INSERT INTO @ SELECT id + 40, concat('u', id), id / 3, id, timestamp'2026-03-01 00:00:00Z' + make_interval(0, 0, 0, id), null, array(), map(), null FROM range(1, 5)
DELETE FROM @ WHERE id IN (5, 3000000025, 42)
UPDATE @ SET title = 'changed' WHERE id IN (7, 43)
ALTER TABLE @ CREATE TAG wide
ALTER TABLE @ CREATE BRANCH side
INSERT INTO @.branch_side SELECT * FROM @ WHERE id = 8
ALTER TABLE @ ALTER COLUMN quantity FIRST
ALTER TABLE @ DROP PARTITION FIELD truncate(2, title)
ALTER TABLE @ DROP COLUMN title
"""  # noqa: E501 (one statement in a line)
CONDITIONS = {
    "narrow": ["id > 18", "name = 'n7'", "part.a = 9", "price BETWEEN 1 AND 2", "exact < 1",
               "quantity IN (10, 50)"],
    "wide": ["id > 3000000000", "id < 6", "title = 'changed'", "quantity IS NULL", "price > 5",
             "part.renamed = 22", '"at" >= TIMESTAMP \'2026-02-25 00:00:00\''],
}  # fmt: skip


@pytest.mark.parametrize(
    ("format_version", "mode"), [(1, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")]
)
def test_each_reader_gives_the_rows_of_spark(
    tmp_path: Path, spark: SparkSession, format_version: int, mode: str
) -> None:
    project = Life(tmp_path, spark, format_version, mode)
    for statement in LIFE.splitlines():
        project.statement(statement)
    counts = compare_rows(project, "db.life")
    assert counts["query"] >= 12
    assert counts["pyiceberg"] == counts["query"]
    # Partitions and statistics skip no file that has a wanted row.
    with open_tables(project.opened) as session:
        for tag, conditions in CONDITIONS.items():
            rows = query_table(session, "db.life", at=ReadPoint(tag=tag))
            unskipped = duckdb.connect().register("unskipped", rows)
            for condition in conditions:
                ours = query_table(session, "db.life", condition, ["id"], at=ReadPoint(tag=tag))
                theirs = unskipped.execute(f"SELECT id FROM unskipped WHERE {condition}").fetchall()
                assert sorted(ours["id"].to_pylist()) == sorted(row[0] for row in theirs), condition
                assert theirs, f"{condition} finds no row"
        text = "SELECT count(*) AS n FROM db.life a JOIN db.life FOR VERSION AS OF 'narrow' b USING (id)"
        (expected,) = project.statement(
            "SELECT count(*) FROM @ a JOIN (SELECT * FROM @ VERSION AS OF 'narrow') b USING (id)"
        )
        assert query_sql(session, text)["n"].to_pylist() == list(expected)


@pytest.mark.parametrize("format_version", [2, 3])
def test_equality_deletes_by_a_column_that_is_renamed_and_dropped(
    tmp_path: Path, spark: SparkSession, format_version: int
) -> None:
    lake = Deleting(tmp_path, spark, format_version, identifier="[]")
    lake.insert(range(6))
    lake.delete_by_equality(4)
    lake.insert([4])
    lake.sql("DELETE FROM @ WHERE id = 2")
    lake.delete_by_equality(0)
    lake.sql("ALTER TABLE @ RENAME COLUMN id TO key")
    before = compare_rows(lake, "db.t")
    lake.sql("ALTER TABLE @ DROP COLUMN key")
    assert compare_rows(lake, "db.t") == before
    assert before["pyiceberg"] < before["query"]


def test_deletion_vectors_of_several_files_are_in_one_puffin_file(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = Deleting(tmp_path, spark, 3, granularity="partition")
    # A long vector beside a short one: a cached read of the long one has the bytes of the short one, too.
    for pair in range(4):
        for start, rows in ((pair * 10_000, 3000), (pair * 10_000 + 5000, 9)):
            columns = "CAST(id AS INT), concat('v', id), concat('c', id)"
            lake.sql(f"INSERT INTO @ SELECT /*+ COALESCE(1) */ {columns} FROM range({start}, {start + rows})")
        lake.sql(f"DELETE FROM @ WHERE id DIV 10000 = {pair} AND id % 3 = 1")
    vectors = lake.sql("SELECT count(DISTINCT file_path), count(*) FROM @.delete_files")
    assert vectors == [(4, 8)]
    for file in tmp_path.rglob("*.puffin"):
        os.utime(file, (0, 0))  # DuckDB caches no file that is younger than ten seconds
    assert compare_rows(lake, "db.t")["pyiceberg"] >= 12


def test_variants_are_json(tmp_path: Path, spark: SparkSession) -> None:
    lake = Deleting(tmp_path, spark, 3)
    name = f"{lake.catalog}.db.v"
    lake.spark.sql(f"CREATE TABLE {name} (id INT, v VARIANT) TBLPROPERTIES ('format-version' = '3')")
    lake.spark.sql(f"""INSERT INTO {name} VALUES (1, parse_json('{{"a": [1, "x"]}}')), (2, NULL)""")
    with open_tables(lake.opened) as session:
        rows = query_table(session, "db.v", "v IS NULL OR (v->'a'->>0) = '1'")
    assert sorted(rows.to_pylist(), key=str) == [{"id": 1, "v": '{"a":[1,"x"]}'}, {"id": 2, "v": None}]


def test_random_histories(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> None:
    def course(data: st.DataObject) -> None:
        version = data.draw(st.sampled_from((1, 2, 3)))
        mode = (
            data.draw(st.sampled_from(("copy-on-write", "merge-on-read"))) if version > 1 else "copy-on-write"
        )
        project = Life(tmp_path_factory.mktemp("random"), spark, version, mode)
        project.statement(LIFE.splitlines()[0])
        for number in range(data.draw(st.integers(4, 9))):
            statement = data.draw(st.sampled_from(STEPS)).replace("#", str(number))
            with suppress(Exception):  # Spark refuses what does not fit the table of the moment
                project.statement(statement)
        compare_rows(project, "db.life")

    run("histories that are read", course)


STEPS = (
    "DELETE FROM @ WHERE id % 7 = #",
    "UPDATE @ SET price = price + # WHERE id % 5 = #",
    "INSERT INTO @ (id, exact) SELECT id + 100 * #, id / 8 FROM range(5)",
    "INSERT INTO @ (id, at) SELECT id + 200 * #, timestamp'2026-05-01 00:00:00Z' FROM range(5)",
    "ALTER TABLE @ ADD COLUMN added_# STRING",
    "INSERT INTO @ (id, added_#) VALUES (7, 'x')",
    "ALTER TABLE @ DROP COLUMN quantity",
    "ALTER TABLE @ ADD COLUMN quantity BIGINT",
    "ALTER TABLE @ RENAME COLUMN name TO name_#",
    "ALTER TABLE @ DROP COLUMN by_name",
    "ALTER TABLE @ ALTER COLUMN id TYPE BIGINT",
    "ALTER TABLE @ ALTER COLUMN exact TYPE DECIMAL(12,2)",
    "ALTER TABLE @ RENAME COLUMN part.a TO a_#",
    "ALTER TABLE @ ADD COLUMN part.c_# INT FIRST",
    "ALTER TABLE @ ADD COLUMN items.element.y_# INT",
    "ALTER TABLE @ DROP PARTITION FIELD bucket(4, id)",
    "ALTER TABLE @ ADD PARTITION FIELD truncate(#, id)",
    "ALTER TABLE @ ADD PARTITION FIELD days(at)",
    "ALTER TABLE @ DROP PARTITION FIELD days(at)",
    "ALTER TABLE @ DROP COLUMN at",
    "ALTER TABLE @ CREATE TAG tag_#",
    "CALL $.system.rewrite_data_files(table => 'db.life', options => map('rewrite-all', 'true'))",
)


class Life(Deleting):
    """A project with the table `db.life`."""

    def __init__(self, folder: Path, spark: SparkSession, format_version: int, mode: str) -> None:
        super().__init__(folder, spark)
        self.apply("0002", CREATE.replace("FORMAT", str(format_version)).replace("MODE", mode))

    def statement(self, text: str) -> list[tuple[object, ...]]:
        """Run a statement on `@`, the table."""
        return self.sql(text.replace("@", f"{self.catalog}.db.life").replace("$", self.catalog))


def test_adopted_files_of_spark_are_read_by_each_reader(tmp_path: Path, spark: SparkSession) -> None:
    """Spark writes times as INT96, which has no statistics, and escapes values in names of folders."""
    (tmp_path / "project").mkdir()
    lake = OwnProject(tmp_path / "project", spark, "adopting", "adopting")
    name, files = f"{lake.catalog}.db.visits", tmp_path / "files"
    lake.spark.sql(f"CREATE NAMESPACE {lake.catalog}.db")
    lake.spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, at TIMESTAMP, tags ARRAY<STRING>, region STRING) "
        "USING iceberg PARTITIONED BY (region, days(at))"
    )
    for day in (1, 2):
        rows = lake.spark.sql(
            f"SELECT CAST(id AS INT) AS id, TIMESTAMP '2026-11-0{day} 09:00:00Z' AS at, array('t') AS tags, "
            f"element_at(array('eu', 'a/b #?%41', NULL), CAST(id AS INT)) AS region, {day} AS part "
            "FROM range(1, 4)"
        )
        rows.coalesce(1).write.mode("append").partitionBy("region").parquet(
            str(files / f"day=2026-11-0{day}")
        )
    shutil.rmtree(files / "day=2026-11-02/region=eu")
    request = AdoptionRequest(files, "db.visits")
    with pytest.raises(Mistakes, match="nothing was changed"):
        adopt_parquet(lake.opened, None, request)  # the column `part` is not in the table
    lake.spark.sql(f"ALTER TABLE {name} ADD COLUMN part INT")
    assert adopt_parquet(lake.opened, None, request).rows == 5
    lake.spark.sql(f"REFRESH TABLE {name}")
    expected = [(1, "eu", 1), (2, "a/b #?%41", 1), (2, "a/b #?%41", 2), (3, None, 1), (3, None, 2)]
    query = f"SELECT id, region, day(at) FROM {name} ORDER BY id, 3"
    assert [tuple(row) for row in lake.spark.sql(query).collect()] == expected
    found = lake.spark.sql(f"SELECT count(*) FROM {name} WHERE region = 'a/b #?%41' AND at < '2026-11-02'")
    assert found.first() == (1,)
    lake.spark.sql(f"INSERT INTO {name} VALUES (9, TIMESTAMP '2026-11-09 09:00:00Z', NULL, 'us', 9)")
    undo = AdoptionRequest(files, "db.visits", is_undo=True)
    assert adopt_parquet(lake.opened, None, undo).rows == 5
    lake.spark.sql(f"REFRESH TABLE {name}")
    assert [tuple(row) for row in lake.spark.sql(query).collect()] == [(9, "us", 9)]
