"""``icemigrate rollback``."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from icemigrate.cli.approval import Question, made_just_now, show_plan
from icemigrate.cli.context import Settings, SparkTold, pass_settings
from icemigrate.cli.options import format_option, global_options, lock_timeout_option
from icemigrate.cli.progress import carry_out
from icemigrate.cli.streams import write
from icemigrate.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from icemigrate.project import Project
    from icemigrate.results import PlanResult
    from icemigrate.undo import Options


_QUESTION = Question("Take these migrations back?", "these migrations shall be taken back", "takes them back")


@click.command("rollback")
@click.option("--to", metavar="VERSION", help="All after this one; `0` for all. Without it the last one.")
@click.option("--only", metavar="VERSION", help="This one alone, unless a later one depends on it.")
@click.option("--partial", is_flag=True, help="Leave what cannot be undone, and undo the rest.")
@click.option(
    "--discard-new-data",
    is_flag=True,
    help="Give up rows written since a migration that changed rows.",
)
@click.option(
    "--metadata-only",
    is_flag=True,
    help="Leave the rows of a migration that changed rows as they are.",
)
@click.option(
    "--refill/--no-refill",
    default=None,
    help="Bring values of dropped columns back that were rewritten away and a tag keeps; with `--only` also "
    "of a version that is rolled back already. `--no-refill` gives them up there.",
)
@click.option("--auto-approve", is_flag=True, help="Do not ask.")
@lock_timeout_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: Settings,
    to: str | None,
    only: str | None,
    partial: bool,
    discard_new_data: bool,
    metadata_only: bool,
    refill: bool | None,
    auto_approve: bool,
    lock_timeout_s: float | None,
) -> ExitCode:
    """Take migrations back: show the plan of it, ask, do, verify, record.

    Newer rows and what others changed since stay.  A version that was taken back is held: it waits for
    `apply --redo`.  Ends with 3 when something cannot be undone, with 4 when somebody changed it since.
    """
    from icemigrate.undo import Options

    if discard_new_data and metadata_only:
        raise UsageError("`--discard-new-data` and `--metadata-only` exclude each other", "give one of them")
    options = Options(partial, discard_new_data, metadata_only, refill=refill)
    project = settings.open_project()
    spark = SparkTold() if auto_approve else SparkTold(_QUESTION.require_terminal)
    result = _plan(settings, project, to, only, options, spark)
    show_plan(settings, result)
    if not result.ready:
        return result.obstacle
    if not result.is_empty and not auto_approve and not _QUESTION.is_agreed_to():
        write("Nothing was done.\n", sys.stderr)
        return ExitCode.ERROR
    with made_just_now("rollback"):
        return _carry_out(settings, project, result, options, lock_timeout_s, spark)


def _plan(
    settings: Settings,
    project: Project,
    to: str | None,
    only: str | None,
    options: Options,
    spark: SparkTold,
) -> PlanResult:
    from icemigrate.app.rolling_back import plan_rollback

    return plan_rollback(
        project,
        settings.environment,
        to=to,
        only=only,
        options=options,
        on_start=spark.tell_of_questions,
    )


def _carry_out(
    settings: Settings,
    project: Project,
    result: PlanResult,
    options: Options,
    lock_timeout_s: float | None,
    spark: SparkTold,
) -> ExitCode:
    from icemigrate.app.rolling_back import rollback

    act = partial(rollback, project, result.plan, options=options, lock_timeout_s=lock_timeout_s)
    return carry_out(settings, act, spark.tell_of_start)
