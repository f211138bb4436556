"""Says which migrations of a plan are not committed in one transaction of the catalog, and why."""

from __future__ import annotations

from icemigrate.commands.spark_use import with_spark_use
from icemigrate.evidence.lost_partition_values import lost_partition_values
from icemigrate.execution.engine_choice import transaction_engine_obstacle
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import replace
from icemigrate.planning.transactions import TableByTable, is_seen_partly, transaction_obstacle
from icemigrate.results.command_results import PlanResult


def with_engine_notes(
    session: EnvironmentSession, result: PlanResult, *, has_spark: bool = False, has_history: bool = True
) -> PlanResult:
    """The plan with what needs Spark, and with the migrations that are committed table by table.

    :param has_spark: whether the caller brings a Spark session.
    :param has_history: whether the history exists.
    """
    result = with_spark_use(session, result)
    return with_table_by_table(session, result, has_spark=has_spark, has_history=has_history)


def with_table_by_table(
    session: EnvironmentSession, result: PlanResult, *, has_spark: bool = False, has_history: bool = True
) -> PlanResult:
    """The plan with the migrations whose tables are committed one after the other.

    :param has_spark: whether the caller brings a Spark session.
    :param has_history: whether the history exists.
    """
    plan = result.plan
    seen = [m for m in plan.migrations if not plan.is_baseline and is_seen_partly(m)]
    if not seen:
        return result
    always = transaction_engine_obstacle(session, has_spark=has_spark, has_history=has_history)
    reasons = {m.version: always or transaction_obstacle(m) for m in seen}
    if None in reasons.values():
        lost = lost_partition_values(session.catalog, plan)
        reasons |= {version: lost[version][0] for version in lost if version in reasons}
    found = tuple(TableByTable(version, reason) for version, reason in reasons.items() if reason is not None)
    return replace(result, table_by_table=found)
