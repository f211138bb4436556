"""``icemigrate maintain``."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from icemigrate.cli.approval import Question
from icemigrate.cli.context import Settings, SparkTold, pass_settings
from icemigrate.cli.options import format_option, global_options, lock_timeout_option
from icemigrate.cli.streams import write
from icemigrate.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from icemigrate.model.upkeep import MaintainResult


def _duration(_ctx: click.Context, _param: click.Parameter, value: str | None) -> timedelta | None:
    from icemigrate.model.retention import BadDuration, parse_duration

    if value is None:
        return None
    try:
        return timedelta(milliseconds=parse_duration(value))
    except BadDuration as error:
        raise click.BadParameter(str(error)) from error
    except OverflowError as error:
        raise click.BadParameter(f"`{value}` is longer than anything lasts") from error


_QUESTION = Question("Do all of this?", "all of this shall be done", "does it")


@click.command("maintain")
@click.option("--trash", is_flag=True, help="Drop for good what is in the trash longer than `trash.max_age`.")
@click.option("--snapshots", is_flag=True, help="Expire snapshots by `retention.snapshots`.")
@click.option("--rows", is_flag=True, help="Delete rows by `retention.rows`.")
@click.option(
    "--orphans", is_flag=True, help="Remove files that no snapshot knows; never done unless asked for."
)
@click.option(
    "--older-than",
    metavar="AGE",
    show_default="3d",
    callback=_duration,
    help="How old orphan files must be; at least `3d`.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--auto-approve", is_flag=True, help="Do not ask.")
@lock_timeout_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: Settings,
    /,
    older_than: timedelta | None,
    dry_run: bool,
    auto_approve: bool,
    lock_timeout_s: float | None,
    **parts: bool,
) -> ExitCode:
    """Carry out retention: show what would be done, ask, do, record.

    Without a part named: trash, snapshots and rows.  Ends with 3 when something was refused because it is not
    safe, and with 4 when a migration is running or was interrupted; all else is done.
    """
    from icemigrate.app.maintaining import RETENTION, maintain, plan_maintenance

    if older_than is not None and not parts["orphans"]:
        raise UsageError("`--older-than` is the age of orphan files", "add `--orphans`")
    project = settings.open_project()
    chosen = tuple(part for part, is_on in parts.items() if is_on) or RETENTION
    is_asked = not (auto_approve or dry_run)
    spark = SparkTold(_QUESTION.require_terminal) if is_asked else SparkTold()
    plan = plan_maintenance(
        project,
        settings.environment,
        parts=chosen,
        older_than=older_than,
        on_start=spark.tell_of_questions,
    )
    if dry_run or not plan.acts:
        settings.answer(plan.result)
        return _code(plan.result)
    _show(settings, plan.result)
    if not auto_approve and not _QUESTION.is_agreed_to():
        write("Nothing was done.\n", sys.stderr)
        return ExitCode.ERROR
    answer = maintain(
        project,
        plan,
        on_act=lambda part, table: write(f"{part}: {table} …\n", sys.stderr),
        on_start=spark.tell_of_start,
        lock_timeout_s=lock_timeout_s,
    )
    settings.answer(answer)
    return _code(answer)


def _show(settings: Settings, result: MaintainResult) -> None:
    """What would be done, beside the answer where that is for a program."""
    from icemigrate.render.formats import render

    stream: Any = sys.stdout if settings.format == "text" else sys.stderr
    write(render(result, "text", settings.style(stream)), stream)


def _code(result: MaintainResult) -> ExitCode:
    if result.refused:
        return ExitCode.FINDINGS
    return ExitCode.CONFLICT if result.interrupted else ExitCode.OK
