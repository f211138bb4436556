"""``plan --rehearse``: the plan's statements on copies of the tables, with Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from icemigrate.commands.data_step_locations import locate_data_step_errors
from icemigrate.errors import UsageError
from icemigrate.events import Event
from icemigrate.execution.connect_start import uses_connect
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.spark_start import engine_of
from icemigrate.planning.plan import Plan
from icemigrate.project import Project
from icemigrate.spark.commit_ports import JVM_HINT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.rehearsal import RehearsalResult


def rehearse(
    project: Project,
    plan: Plan,
    *,
    spark: SparkSession | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_start: Callable[[], None] = lambda: None,
) -> RehearsalResult:
    """Run a plan on structural copies of its tables; no table changes.

    :param spark: a running session with Iceberg's SQL extensions; without it one is started.
    :param on_start: called before Spark is started.
    :raises UsageError: Spark runs behind Spark Connect.
    :raises Mistakes: Spark cannot run data steps; those of the first such migration are reported.
    :raises EngineError: Java or Spark failed, or a statement would; the first one is named.
    """
    from icemigrate.spark.rehearsal import rehearse_on_copies as run

    with open_environment(project, plan.environment) as session, locate_data_step_errors(session):
        if uses_connect(session.environment, spark):
            message = "`--rehearse` runs statements on copies of tables, which Spark Connect cannot make"
            raise UsageError(message, JVM_HINT)
        return run(engine_of(session, spark, on_start), plan, on_event)
