"""Says what a plan uses Spark for, where Spark does not make every change, and what it cannot do."""

from __future__ import annotations

from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.evidence.lost_partition_values import lost_partition_values
from icemigrate.execution.connect_start import connect_obstacle, uses_connect
from icemigrate.execution.engine_choice import commits_in_python
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import replace
from icemigrate.planning.spark_requirements import renames, spark_requirements
from icemigrate.results.command_results import PlanResult
from icemigrate.spark.commit_ports import JVM_HINT


def with_spark_use(session: EnvironmentSession, result: PlanResult) -> PlanResult:
    """The plan with a note of what Python commits, or with the errors of what needs Spark."""
    apply_with, is_remote = session.environment.apply_with, uses_connect(session.environment, None)
    if result.plan.is_empty:
        return result
    if is_remote and (obstacle := connect_obstacle(session)) is not None:
        refused = Diagnostic("needs-jvm", obstacle.reason, hint=obstacle.hint)
        return replace(result, diagnostics=(*result.diagnostics, refused))
    if not is_remote and (apply_with in (None, "spark") or not commits_in_python(session)):
        return result
    java = _java_requirements(session, result)
    needs = {m.version: (*spark_requirements(m), *java[m.version]) for m in result.plan.migrations}
    if apply_with == "metadata":
        found = [_refusal(version, part) for version, parts in needs.items() for part in parts]
    else:
        found = []
    if is_remote and not found:
        found = [_refusal_of_connect(version, part) for version, parts in java.items() for part in parts]
    with_spark = "the Spark Connect server runs statements of" if is_remote else "Spark starts for"
    return replace(result, diagnostics=(*result.diagnostics, *(found or [_note(needs, with_spark)])))


def _java_requirements(session: EnvironmentSession, result: PlanResult) -> dict[str, tuple[str, ...]]:
    """The parts of each migration that need Iceberg's Java library."""
    lost = lost_partition_values(session.catalog, result.plan)
    is_renamed_by_client = session.catalog.capabilities.renames_by_client
    return {
        m.version: (*lost.get(m.version, ()), *(renames(m) if is_renamed_by_client else ()))
        for m in result.plan.migrations
    }


def _refusal(version: str, part: str) -> Diagnostic:
    return Diagnostic(
        "needs-spark",
        f"migration {version} needs Spark, which `apply_with: metadata` does not use: {part}",
        hint="`--apply-with auto` starts Spark where a step needs it",
    )


def _refusal_of_connect(version: str, part: str) -> Diagnostic:
    message = f"migration {version} needs Iceberg's Java library, which Spark Connect does not reach: {part}"
    return Diagnostic("needs-jvm", message, hint=JVM_HINT)


def _note(needs: dict[str, tuple[str, ...]], with_spark: str) -> Diagnostic:
    alone = ", ".join(version for version, parts in needs.items() if not parts)
    others = "; ".join(f"{version}: {', '.join(parts)}" for version, parts in needs.items() if parts)
    parts = [f"Python commits {alone} without Spark"] if alone else []
    parts += [f"{with_spark} {others}"] if others else []
    return Diagnostic("applied-with", "; ".join(parts), severity=Severity.NOTE)
