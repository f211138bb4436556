"""``icemigrate apply``."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icemigrate.cli.approval import ApprovalPrompt, replan_hint, show_plan
from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice, pass_settings
from icemigrate.cli.options import (
    apply_with_option,
    auto_approve_option,
    format_option,
    global_options,
    lock_timeout_option,
    overwrite_option,
    redo_option,
    require_only_redo,
    to_option,
)
from icemigrate.cli.progress import run_with_progress
from icemigrate.cli.reconcile import (
    reconcile_options,
    reconcile_plan,
    require_compatible_options,
    run_reconcile,
    verify_saved_reconcile_plan,
)
from icemigrate.cli.streams import write_stream
from icemigrate.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from icemigrate.project import Project
    from icemigrate.project.project_values import ApplyWith
    from icemigrate.results.command_results import PlanResult


_APPLY = ApprovalPrompt("Apply these changes?", "applies them")
_RECORD = ApprovalPrompt("Record these migrations?", "records them")


@click.command("apply")
@click.argument("plan_file", metavar="[PLAN]", required=False, type=click.Path(path_type=Path))
@to_option
@overwrite_option
@redo_option
@click.option(
    "--baseline",
    is_flag=True,
    help="Record migrations as applied without changing tables: those that only adopt, or "
    "with --to all up to that version.",
)
@reconcile_options
@apply_with_option
@auto_approve_option
@lock_timeout_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    plan_file: Path | None,
    to: str | None,
    overwrite: tuple[str, ...],
    redo: tuple[str, ...],
    baseline: bool,
    reconcile: bool,
    tables: tuple[str, ...],
    allow: tuple[str, ...],
    apply_with: ApplyWith | None,
    auto_approve: bool,
    lock_timeout_s: float | None,
) -> ExitCode:
    """Apply the pending migrations: plan, ask, run, verify, record.

    With PLAN, a file that `plan --out` wrote, applies exactly that plan or nothing.  With --baseline, changes
    no table: records the migrations that only adopt, or with --to all up to a version that the catalog is at.
    """
    project = dataclasses.replace(settings.open_project(), apply_with=apply_with)
    spark = SparkStartNotice() if auto_approve else SparkStartNotice(_APPLY.require_terminal)
    require_compatible_options(reconcile, tables, allow, plan_file, to, overwrite, redo)
    if reconcile and baseline:
        raise UsageError("`--reconcile` and `--baseline` cannot be combined", "remove one of them")
    if reconcile:
        result = reconcile_plan(settings, project, tables, allow, spark)
    else:
        result = _plan(settings, project, plan_file, to, overwrite, redo, baseline, spark)
    show_plan(settings, result, auto_approve=auto_approve)
    if not result.ready:
        return result.obstacle
    if not result.is_empty and not auto_approve and not _question(result).is_agreed_to():
        write_stream("Cancelled: no changes were made.\n", sys.stderr)
        return ExitCode.ERROR
    with replan_hint("apply") if plan_file is None else nullcontext():
        if result.plan.reconcile is not None:
            return run_reconcile(settings, project, result, lock_timeout_s, spark)
        return _carry_out(settings, project, result, lock_timeout_s, spark)


def _plan(
    settings: InvocationOptions,
    project: Project,
    plan_file: Path | None,
    to: str | None,
    overwrite: tuple[str, ...],
    redo: tuple[str, ...],
    baseline: bool,
    spark: SparkStartNotice,
) -> PlanResult:
    require_only_redo(redo, plan_file, to)
    if baseline and (plan_file is not None or redo or overwrite):
        raise UsageError(
            "`--baseline` records migrations and changes no table",
            "remove the plan file, `--redo` and `--overwrite`",
        )
    if plan_file is None:
        from icemigrate.commands.plan import plan

        return plan(project, settings.environment, to=to, overwrite=overwrite, redo=redo, baseline=baseline)
    if to is not None or overwrite:
        raise UsageError("a saved plan is applied as it is", "pass `--to` and `--overwrite` to `plan --out`")
    from icemigrate.commands.apply import verify_saved_plan
    from icemigrate.commands.saved_plans import load_saved_plan

    saved = load_saved_plan(plan_file)
    if settings.environment not in (None, saved.environment):
        raise UsageError(
            f"the plan is for environment `{saved.environment}`, not `{settings.environment}`",
            "remove `--env`, or plan again for the other environment",
        )
    return (
        verify_saved_plan(project, saved)
        if saved.reconcile is None
        else verify_saved_reconcile_plan(project, saved, spark)
    )


def _question(result: PlanResult) -> ApprovalPrompt:
    return _RECORD if result.plan.is_baseline else _APPLY


def _carry_out(
    settings: InvocationOptions,
    project: Project,
    result: PlanResult,
    lock_timeout_s: float | None,
    spark: SparkStartNotice,
) -> ExitCode:
    from icemigrate.commands.apply import apply

    act = partial(apply, project, result.plan, lock_timeout_s=lock_timeout_s)
    return run_with_progress(settings, act, spark.before_start)
