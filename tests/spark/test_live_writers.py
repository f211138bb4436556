"""A real stream, a batch job and PyIceberg write one table: whom the plan names, and what happens to them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

from icemigrate import Project
from icemigrate.planning.plan import AffectedWriter
from tests.support.undo_project import UndoWorld

CREATE = "tables: [{name: db.t, columns: [{name: id, type: long}, {name: v, type: int}]}]"
RENAME = "tables: [{name: db.t, renames: {v: volume}, partition_by: ['bucket(4, id)']}]"
RENAMED = "fails, at the latest when it restarts, if it writes `v`, which this migration renames to `volume`"
ADD = "tables: [{name: db.t, columns: [{name: note, type: string}]}]"


def pyiceberg(world: UndoWorld) -> Catalog:
    (database,) = (world.folder / ".icemigrate").rglob("*.db")
    return load_catalog(world.catalog, type="sql", uri=f"sqlite:///{database}")


def stream(world: UndoWorld, *rows: tuple[int, int]) -> str:
    """Rows arrive in a folder and are taken from there into the table; gives the query's id."""
    arriving, name = world.folder / "arriving", f"`{world.catalog}`.`db`.`t`"
    world.spark.createDataFrame(rows, "id long, v int").coalesce(1).write.mode("append").parquet(
        str(arriving)
    )
    query = (
        world.spark.readStream.schema("id long, v int")
        .parquet(str(arriving))
        .writeStream.option("checkpointLocation", str(world.folder / "checkpoint"))
        .trigger(availableNow=True)
        .toTable(name)
    )
    assert query.awaitTermination(60)
    return str(query.id)


def append(world: UndoWorld, column: str) -> None:
    """What PyIceberg appends, whose users know the columns by their names."""
    schema = pa.schema([pa.field("id", pa.int64()), pa.field(column, pa.int32())])
    pyiceberg(world).load_table("db.t").append(pa.table([[9], [90]], schema=schema))


def insert(world: UndoWorld, columns: str) -> None:
    world.spark.sql(f"INSERT INTO `{world.catalog}`.`db`.`t` ({columns}) VALUES (7, 70)")


def writers(world: UndoWorld) -> dict[tuple[str | None, bool], AffectedWriter]:
    (table,) = world.project.plan().plan.migrations[0].tables
    return {(w.writer.engine, w.writer.stream): w for w in table.writers}


def test_those_who_write_are_named_and_those_who_break_do_break(spark: SparkSession, tmp_path: Path) -> None:
    world = UndoWorld(tmp_path, spark)
    world.file("0001", CREATE)
    world.project.apply(spark=world.spark)
    query = stream(world, (1, 10))
    assert stream(world, (2, 20)) == query, "it goes on from its checkpoint"
    insert(world, "id, v")
    append(world, "v")

    world.file("0002", ADD)
    found = writers(world)
    assert {key: w.writer.commits for key, w in found.items()} == {
        ("spark", True): 2,
        ("spark", False): 1,
        (None, False): 1,
    }
    assert found["spark", True].writer.name == query
    assert found["spark", False].writer.id == spark.sparkContext.applicationId
    broken = [key for key, w in found.items() if w.breaks]
    assert broken == [("spark", False)], "who gives values by name has to know of no new optional column"
    world.project.apply(spark=world.spark)
    stream(world, (3, 30))
    append(world, "v")

    world.file("0003", RENAME)
    found = writers(world)
    assert sum(w.writer.commits for w in found.values()) == 6, "what icemigrate records is no write"
    assert [key for key, w in found.items() if w.must_restart] == [("spark", True)]
    assert RENAMED in found[None, False].breaks
    world.project.apply(spark=world.spark)
    with pytest.raises(ValueError, match="more columns: v"):
        append(world, "v")
    with pytest.raises(AnalysisException):
        insert(world, "id, v")
    with pytest.raises(StreamingQueryException):
        stream(world, (4, 40))
    append(world, "volume")

    planned = Project(tmp_path).plan_rollback(spark=world.spark).plan
    assert {w.writer.engine for w in planned.migrations[0].tables[0].writers} == {"spark", None}
