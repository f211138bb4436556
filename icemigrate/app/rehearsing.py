"""``plan --rehearse``: the plan's statements on copies of the tables, with Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from icemigrate.app.placing import placed
from icemigrate.app.spark import engine_of
from icemigrate.app.world import opened
from icemigrate.events import Event
from icemigrate.plan import Plan
from icemigrate.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.engine.rehearsal import Rehearsed


def rehearse(
    project: Project,
    plan: Plan,
    *,
    spark: SparkSession | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_start: Callable[[], None] = lambda: None,
) -> Rehearsed:
    """Run a plan on structural copies of its tables; no table is touched.

    :param spark: a running session with Iceberg's SQL extensions; without it one is started.
    :param on_start: called before Spark is started.
    :raises Mistakes: Spark would not run data steps; those of the first migration that has such are told.
    :raises EngineError: Java or Spark failed, or a statement would; the first one is named.
    """
    from icemigrate.engine.rehearsal import rehearse as run

    with opened(project, plan.environment) as world, placed(world, plan):
        return run(engine_of(world, spark, on_start), plan, on_event)
