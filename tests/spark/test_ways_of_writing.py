"""What each kind of change does to each way in which Spark writes a table, as the plan says it.

No snapshot tells how a job gives its values, so the plan says what breaks which way; that is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.snapshot_writers import Writer
from icemigrate.iceberg.table import Table
from icemigrate.planning.concurrent_writers import with_affected_writers
from icemigrate.planning.plan import TablePlan
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.spark.publish import apply_step
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark_sql.identifiers import table_sql
from tests.spark.conftest import Warehouse
from tests.support.planned_migrations import pending
from tests.support.small_tables import table

Row: TypeAlias = "tuple[int, int, tuple[int, int]]"
RIGHT, WRONG, FAILS = "right", "wrong", "fails"
WAYS = ("by position", "with columns", "by name", "append", "merge", "stream")
BY_NAME = "fails if it writes `v` by name, which this migration renames to `volume`"
MORE = "fails if it writes values by position, or by `*` in a `MERGE`, because the table gets a new column"
MORE_IN_S = "fails if it writes `s`, even by name, because it gets a new field"
MOVED = "fails or writes into the wrong columns if it writes values by position, because their order changes"
MOVED_IN_S = (
    "fails or writes into the wrong fields of `s` if it is an `INSERT` without `BY NAME`, "
    "because their order changes"
)
MISSED = "writes no value for `q`, which this migration adds as required"
ORDER = "writes columns in the old order, which Spark refuses at its next start"


@dataclass(frozen=True)
class Measured:
    """A change, and what comes of rows that are written as if nobody knew of it.

    :param job: what the plan says of a job of Spark.
    :param stream: what it says of a stream of Spark.
    """

    text: str
    outcomes: Mapping[str, str]
    job: tuple[str, ...]
    stream: tuple[str, ...] = ()


def _of(**differing: str) -> dict[str, str]:
    """The outcome of each way; right where nothing is said."""
    told = {name.replace("_", " "): outcome for name, outcome in differing.items()}
    assert told.keys() <= set(WAYS)
    return {way: told.get(way, RIGHT) for way in WAYS}


MEASURED = (
    Measured("columns: [{name: w, type: int}]", _of(by_position=FAILS, merge=FAILS), (MORE,)),
    Measured(
        "columns: [{name: s.y, type: int}]",
        {**dict.fromkeys(WAYS, FAILS), "stream": RIGHT},
        (MORE_IN_S,),
    ),
    Measured(
        "columns: [{name: q, type: int, required: true, default: 3}]",
        _of(by_position=FAILS, merge=FAILS, stream=FAILS),
        (MORE,),
        (MISSED,),
    ),
    Measured(
        "renames: {v: volume}",
        {**dict.fromkeys(WAYS, FAILS), "by position": RIGHT},
        (BY_NAME,),
        (
            "fails, at the latest when it restarts, if it writes `v`, "
            "which this migration renames to `volume`",
        ),
    ),
    Measured("columns: [{name: v, first: true}]", _of(by_position=WRONG, stream=FAILS), (MOVED,), (ORDER,)),
    Measured(
        "columns: [{name: s.z, first: true}]",
        _of(by_position=WRONG, with_columns=WRONG, stream=FAILS),
        (MOVED_IN_S,),
        (ORDER,),
    ),
)


def planned(there: Table, text: str) -> tuple[TablePlan, dict[bool, tuple[str, ...]]]:
    """What a migration does to a table; and what its plan says of a job of Spark, and of a stream."""
    base = DeclaredState({there.name: there}, frozenset({there.name.namespace}))
    file = pending("0002", f"allow: [irreversible]\nbecause: x\ntables: [{{name: {there.name}, {text}}}]")
    around = PlanningContext("writing", "local", namespaces=base.namespaces)
    (migration,) = plan_migrations([file], base, {there.name: there}, around).migrations
    assert migration.ready
    written = replace(there, writers=(Writer("spark"), Writer("spark", stream=True)))
    (told,) = with_affected_writers([migration], {there.name: written})
    return told.tables[0], {w.writer.stream: w.breaks for w in told.tables[0].writers}


def row(way: str) -> Row:
    """The row that is written one way; all its values differ from those of others."""
    n = WAYS.index(way) + 1
    return n, n + 100, (n + 200, n + 300)


@dataclass(frozen=True)
class Job:
    """Spark's ways to write a row into a table, as one wrote that knew the columns of before."""

    spark: SparkSession
    name: str
    folder: Path

    def write(self, way: str) -> bool:
        """Whether the row could be written."""
        frame, name = self._frame(way), self.name
        frame.createOrReplaceTempView("given")
        ways: dict[str, Callable[[], object]] = {
            "by position": lambda: self.spark.sql(f"INSERT INTO {name} SELECT * FROM given"),
            "with columns": lambda: self.spark.sql(f"INSERT INTO {name} (id, v, s) SELECT * FROM given"),
            "by name": lambda: self.spark.sql(f"INSERT INTO {name} BY NAME SELECT * FROM given"),
            "append": lambda: frame.writeTo(name).append(),
            "merge": lambda: self.spark.sql(
                f"MERGE INTO {name} t USING given g ON t.id = g.id WHEN NOT MATCHED THEN INSERT *"
            ),
            "stream": lambda: self._stream(frame),
        }
        try:
            ways[way]()
        except (AnalysisException, StreamingQueryException):
            return False
        return True

    def _frame(self, way: str) -> DataFrame:
        n, v, (x, z) = row(way)
        return self.spark.sql(f"SELECT {n}L AS id, {v} AS v, named_struct('x', {x}, 'z', {z}) AS s")

    def _stream(self, frame: DataFrame) -> None:
        frame.coalesce(1).write.parquet(str(self.folder / "arriving"))
        query = (
            self.spark.readStream.schema(frame.schema)
            .parquet(str(self.folder / "arriving"))
            .writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .toTable(self.name)
        )
        assert query.awaitTermination(60)

    def rows(self) -> set[Row]:
        """The rows by the ids of their fields, whatever stands where and is called how."""
        v = next(c for c in self.spark.table(self.name).columns if c in ("v", "volume"))
        found = self.spark.sql(f"SELECT id, {v}, s.x, s.z FROM {self.name}").collect()
        return {(r[0], r[1], (r[2], r[3])) for r in found}


@pytest.mark.parametrize("case", MEASURED, ids=[m.text for m in MEASURED])
def test_what_a_plan_says_of_writers_is_what_comes_of_their_ways(
    case: Measured, spark: SparkSession, warehouse: Warehouse, namespace: str, tmp_path: Path
) -> None:
    engine = SparkEngine(spark, warehouse.catalog)
    name = TableName((namespace,), "t")
    there = engine.create(table("id: long, v: int, s: struct<x: int, z: int>", format_version=3, name=name))
    plan, told = planned(there, case.text)
    engine.commit(name, lambda now: reduce(lambda t, step: apply_step(step, t), plan.all_steps, now))

    job = Job(spark, table_sql(warehouse.catalog, name), tmp_path)
    written = {way: job.write(way) for way in WAYS}
    rows = job.rows()
    found = {
        way: FAILS if not done else RIGHT if row(way) in rows else WRONG for way, done in written.items()
    }
    assert found == case.outcomes
    assert told == {False: case.job, True: case.stream}
