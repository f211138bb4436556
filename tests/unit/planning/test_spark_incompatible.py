"""Changes after which Spark cannot load a table that it writes."""

from __future__ import annotations

import pytest

from icemigrate.frozen import replace
from icemigrate.iceberg.snapshot_writers import Writer
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from tests.support.memory_lake import Lake
from tests.support.planned_migrations import pending

SPARK, STREAM, FLINK = Writer("spark"), Writer("spark", stream=True), Writer("flink", stream=True)
NANOS = "tables: [{name: db.t, columns: [{name: at, type: timestamp_ns}, {name: note, type: string}]}]"


@pytest.mark.parametrize(
    ("writer", "allow", "missing"),
    [
        (SPARK, "", ["db.t.at"]),
        (STREAM, "", ["db.t.at"]),
        (FLINK, "", []),
        (SPARK, "allow: [incompatible db.t.at]\n", []),
    ],
)
def test_a_type_that_spark_cannot_load_needs_a_consent_where_spark_writes(
    writer: Writer, allow: str, missing: list[str]
) -> None:
    lake = Lake()
    lake.apply("0001", "tables: [{name: db.t, format_version: 3, columns: [{name: id, type: long}]}]")
    lake.by_hand(lambda table: replace(table, writers=(writer,)))
    around = PlanningContext("market", "local")
    planned = plan_migrations([pending("0002", allow + NANOS)], lake.state, lake.engine.tables, around)
    (migration,) = planned.migrations
    assert [hazard.scope for hazard in migration.unconsented] == missing
    reasons = {h.reason for t in migration.tables for c in t.changes() for h in c.hazards}
    text = "Spark writes this table, and cannot load a table with a `timestamp_ns`"
    assert reasons == (set() if writer is FLINK else {text})
