"""``icemigrate rollback``."""

from __future__ import annotations

import dataclasses
import sys
from functools import partial
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
)
from icemigrate.cli.progress import run_with_progress
from icemigrate.cli.streams import write_stream
from icemigrate.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from icemigrate.planning.undo import UndoOptions
    from icemigrate.project import Project
    from icemigrate.project.project_values import ApplyWith
    from icemigrate.results.command_results import PlanResult


_QUESTION = ApprovalPrompt("Roll back these migrations?", "rolls them back")


@click.command("rollback")
@click.option(
    "--to",
    metavar="VERSION",
    help="Roll back all versions after this one; `0` for all (default: only the last one).",
)
@click.option(
    "--only", metavar="VERSION", help="Roll back only this version, unless a later one depends on it."
)
@click.option("--partial", is_flag=True, help="Leave what cannot be undone, and undo the rest.")
@click.option(
    "--discard-new-data",
    is_flag=True,
    help="Discard rows written since a migration that changed rows.",
)
@click.option(
    "--metadata-only",
    is_flag=True,
    help="Leave the rows of a migration that changed rows unchanged.",
)
@click.option(
    "--refill/--no-refill",
    default=None,
    help="Restore values of dropped columns that only a tag still has; with `--only`, also "
    "for a version that is already rolled back. `--no-refill` gives them up.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing. Needs no terminal.")
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help="With `--dry-run`: exit with 2 if there is something to roll back.",
)
@apply_with_option
@auto_approve_option
@lock_timeout_option
@format_option("text", "json", "markdown")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    to: str | None,
    only: str | None,
    partial: bool,
    discard_new_data: bool,
    metadata_only: bool,
    refill: bool | None,
    dry_run: bool,
    detailed_exitcode: bool,
    apply_with: ApplyWith | None,
    auto_approve: bool,
    lock_timeout_s: float | None,
) -> ExitCode:
    """Roll back migrations: plan, ask, run, verify, record.

    Keeps newer rows and changes of other clients.  A rolled-back version is applied again only by
    `apply --redo`.  Exits with 3 if something cannot be undone, with 4 if another client changed it since.
    """
    from icemigrate.planning.undo import UndoOptions

    if discard_new_data and metadata_only:
        raise UsageError("`--discard-new-data` and `--metadata-only` cannot be combined", "pass one of them")
    options = UndoOptions(partial, discard_new_data, metadata_only, refill=refill)
    if not dry_run:
        _refuse_plan_options(settings, detailed_exitcode)
    project = dataclasses.replace(settings.open_project(), apply_with=apply_with)
    is_asked = not (auto_approve or dry_run)
    spark = SparkStartNotice(_QUESTION.require_terminal) if is_asked else SparkStartNotice()
    result = _plan(settings, project, to, only, options, spark)
    if dry_run:
        settings.answer(result)
    else:
        show_plan(settings, result, auto_approve=auto_approve)
    if not result.ready:
        return result.obstacle
    if dry_run:
        return ExitCode.CHANGES if detailed_exitcode and not result.is_empty else ExitCode.OK
    if not result.is_empty and not auto_approve and not _QUESTION.is_agreed_to():
        write_stream("Cancelled: no changes were made.\n", sys.stderr)
        return ExitCode.ERROR
    with replan_hint("rollback"):
        return _carry_out(settings, project, result, options, lock_timeout_s, spark)


def _refuse_plan_options(settings: InvocationOptions, detailed_exitcode: bool) -> None:
    """Refuse options of `plan`, because the outcome of a rollback has another form.

    :raises UsageError: one of them is given.
    """
    if detailed_exitcode:
        raise UsageError("`--detailed-exitcode` needs `--dry-run`", "add `--dry-run` to show the plan only")
    if any(output.format == "markdown" for output in settings.outputs):
        raise UsageError("`--format markdown` needs `--dry-run`", "add `--dry-run` to show the plan only")


def _plan(
    settings: InvocationOptions,
    project: Project,
    to: str | None,
    only: str | None,
    options: UndoOptions,
    spark: SparkStartNotice,
) -> PlanResult:
    from icemigrate.commands.rollback import plan_rollback

    return plan_rollback(
        project,
        settings.environment,
        to=to,
        only=only,
        options=options,
        on_start=spark.before_questions,
    )


def _carry_out(
    settings: InvocationOptions,
    project: Project,
    result: PlanResult,
    options: UndoOptions,
    lock_timeout_s: float | None,
    spark: SparkStartNotice,
) -> ExitCode:
    from icemigrate.commands.rollback import rollback

    act = partial(rollback, project, result.plan, options=options, lock_timeout_s=lock_timeout_s)
    return run_with_progress(settings, act, spark.before_start)
