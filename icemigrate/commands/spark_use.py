"""Says what a plan uses Spark for, where the environment's ``apply_with`` does not use it for everything."""

from __future__ import annotations

from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.evidence.lost_partition_values import lost_partition_values
from icemigrate.execution.engine_choice import commits_in_python
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import replace
from icemigrate.planning.spark_requirements import spark_requirements
from icemigrate.results.command_results import PlanResult


def with_spark_use(session: EnvironmentSession, result: PlanResult) -> PlanResult:
    """The plan with a note of what Python commits, or with the errors of what needs Spark."""
    apply_with = session.environment.apply_with
    if apply_with in (None, "spark") or result.plan.is_empty or not commits_in_python(session):
        return result
    lost = lost_partition_values(session.catalog, result.plan)
    needs = {m.version: (*spark_requirements(m), *lost.get(m.version, ())) for m in result.plan.migrations}
    if apply_with == "metadata":
        found = [_refusal(version, part) for version, parts in needs.items() for part in parts]
    else:
        found = []
    return replace(result, diagnostics=(*result.diagnostics, *(found or [_note(needs)])))


def _refusal(version: str, part: str) -> Diagnostic:
    return Diagnostic(
        "needs-spark",
        f"migration {version} needs Spark, which `apply_with: metadata` does not use: {part}",
        hint="`--apply-with auto` starts Spark where a step needs it",
    )


def _note(needs: dict[str, tuple[str, ...]]) -> Diagnostic:
    alone = ", ".join(version for version, parts in needs.items() if not parts)
    with_spark = "; ".join(f"{version}: {', '.join(parts)}" for version, parts in needs.items() if parts)
    parts = [f"Python commits {alone} without Spark"] if alone else []
    parts += [f"Spark starts for {with_spark}"] if with_spark else []
    return Diagnostic("applied-with", "; ".join(parts), severity=Severity.NOTE)
