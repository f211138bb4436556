"""``icemigrate apply``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icemigrate.cli.approval import Question, made_just_now, show_plan
from icemigrate.cli.context import Settings, SparkTold, pass_settings
from icemigrate.cli.options import (
    format_option,
    global_options,
    lock_timeout_option,
    overwrite_option,
    redo_option,
    require_one_version,
    to_option,
)
from icemigrate.cli.progress import carry_out
from icemigrate.cli.reconciling import (
    carry_out_reconcile,
    ready_reconcile,
    reconcile_options,
    reconcile_plan,
    require_alone,
)
from icemigrate.cli.streams import write
from icemigrate.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from icemigrate.project import Project
    from icemigrate.results import PlanResult


_APPLY = Question("Apply these changes?", "these changes shall be applied", "applies them")
_RECORD = Question("Record this?", "this shall be recorded", "records it")


@click.command("apply")
@click.argument("plan_file", metavar="[PLAN]", required=False, type=click.Path(path_type=Path))
@to_option
@overwrite_option
@redo_option
@click.option(
    "--baseline",
    is_flag=True,
    help="Record what is there already, and touch no table; with --to, all up to that version.",
)
@reconcile_options
@click.option("--auto-approve", is_flag=True, help="Do not ask.")
@lock_timeout_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: Settings,
    plan_file: Path | None,
    to: str | None,
    overwrite: tuple[str, ...],
    redo: str | None,
    baseline: bool,
    reconcile: bool,
    tables: tuple[str, ...],
    allow: tuple[str, ...],
    auto_approve: bool,
    lock_timeout_s: float | None,
) -> ExitCode:
    """Do it: plan, ask, run, verify, record.

    With PLAN, a file that `plan --out` wrote, exactly that plan is done, or none.  With --baseline nothing is
    done: what only adopts, or with --to all that the catalog is at already, is recorded in the history.
    """
    project = settings.open_project()
    spark = SparkTold() if auto_approve else SparkTold(_APPLY.require_terminal)
    require_alone(reconcile, tables, allow, plan_file, to, overwrite, redo)
    if reconcile and baseline:
        raise UsageError("`--reconcile` changes tables, and `--baseline` none", "leave one of the two away")
    if reconcile:
        result = reconcile_plan(settings, project, tables, allow, spark)
    else:
        result = _plan(settings, project, plan_file, to, overwrite, redo, baseline, spark)
    show_plan(settings, result)
    if not result.ready:
        return result.obstacle
    if not result.is_empty and not auto_approve and not _question(result).is_agreed_to():
        write("Nothing was done.\n", sys.stderr)
        return ExitCode.ERROR
    with made_just_now("apply") if plan_file is None else nullcontext():
        if result.plan.reconcile is not None:
            return carry_out_reconcile(settings, project, result, lock_timeout_s, spark)
        return _carry_out(settings, project, result, lock_timeout_s, spark)


def _plan(
    settings: Settings,
    project: Project,
    plan_file: Path | None,
    to: str | None,
    overwrite: tuple[str, ...],
    redo: str | None,
    baseline: bool,
    spark: SparkTold,
) -> PlanResult:
    require_one_version(redo, plan_file, to)
    if baseline and (plan_file is not None or redo is not None or overwrite):
        raise UsageError(
            "`--baseline` records what is there and changes nothing",
            "leave the plan's file, `--redo` and `--overwrite` away",
        )
    if plan_file is None:
        from icemigrate.app.planning import plan

        return plan(project, settings.environment, to=to, overwrite=overwrite, redo=redo, baseline=baseline)
    if to is not None or overwrite:
        raise UsageError("a saved plan is done as it is", "leave `--to` and `--overwrite` to `plan --out`")
    from icemigrate.app.applying import ready_plan
    from icemigrate.app.saving import saved_plan

    saved = saved_plan(plan_file)
    if settings.environment not in (None, saved.environment):
        raise UsageError(
            f"the plan is for environment `{saved.environment}`, not for `{settings.environment}`",
            "leave `--env` away, or plan again for the other one",
        )
    return ready_plan(project, saved) if saved.reconcile is None else ready_reconcile(project, saved, spark)


def _question(result: PlanResult) -> Question:
    return _RECORD if result.plan.is_baseline else _APPLY


def _carry_out(
    settings: Settings, project: Project, result: PlanResult, lock_timeout_s: float | None, spark: SparkTold
) -> ExitCode:
    from icemigrate.app.applying import apply

    act = partial(apply, project, result.plan, lock_timeout_s=lock_timeout_s)
    return carry_out(settings, act, spark.tell_of_start)
