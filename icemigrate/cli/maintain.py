"""``icemigrate maintain``."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from icemigrate.cli.approval import ApprovalPrompt, show_changes
from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice, pass_settings
from icemigrate.cli.options import auto_approve_option, format_option, global_options, lock_timeout_option
from icemigrate.cli.streams import write_stream
from icemigrate.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from icemigrate.results.maintain_results import MaintainResult


def _duration(_ctx: click.Context, _param: click.Parameter, value: str | None) -> timedelta | None:
    from icemigrate.iceberg.retention import BadDuration, parse_duration

    if value is None:
        return None
    try:
        return timedelta(milliseconds=parse_duration(value))
    except BadDuration as error:
        raise click.BadParameter(str(error)) from error
    except OverflowError as error:
        raise click.BadParameter(f"`{value}` is too long") from error


_QUESTION = ApprovalPrompt("Run this maintenance?", "runs it")


@click.command("maintain")
@click.option(
    "--trash",
    is_flag=True,
    help="Permanently drop tables that were in the trash longer than `trash.max_age`.",
)
@click.option("--snapshots", is_flag=True, help="Expire snapshots according to `retention.snapshots`.")
@click.option("--rows", is_flag=True, help="Delete rows according to `retention.rows`.")
@click.option("--views", is_flag=True, help="Drop views of `keep_view` whose time is over.")
@click.option(
    "--schemas", is_flag=True, help="Remove old schemas that no snapshot, branch, tag or undo needs."
)
@click.option(
    "--orphans", is_flag=True, help="Remove files that no snapshot refers to; never done by default."
)
@click.option(
    "--older-than",
    metavar="AGE",
    show_default="3d",
    callback=_duration,
    help="Minimum age of orphan files; at least `3d`.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@auto_approve_option
@lock_timeout_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    /,
    older_than: timedelta | None,
    dry_run: bool,
    auto_approve: bool,
    lock_timeout_s: float | None,
    **parts: bool,
) -> ExitCode:
    """Apply retention and remove old schemas: show what would be done, ask, run, record.

    Default parts: all except orphan files.  Exits with 1 if a table cannot be read, with 3 if something was
    refused because it is not safe, and with 4 if a migration is running or was interrupted; everything else
    is done.
    """
    from icemigrate.commands.maintain import DEFAULT_PARTS, maintain, plan_maintenance

    if older_than is not None and not parts["orphans"]:
        raise UsageError("`--older-than` requires `--orphans`", "add `--orphans`")
    project = settings.open_project()
    chosen = tuple(part for part, is_on in parts.items() if is_on) or DEFAULT_PARTS
    is_asked = not (auto_approve or dry_run)
    spark = SparkStartNotice(_QUESTION.require_terminal) if is_asked else SparkStartNotice()
    plan = plan_maintenance(
        project,
        settings.environment,
        parts=chosen,
        older_than=older_than,
        on_start=spark.before_questions,
    )
    if dry_run or not plan.acts:
        settings.answer(plan.result)
        return _code(plan.result)
    show_changes(settings, plan.result, auto_approve=auto_approve)
    if not auto_approve and not _QUESTION.is_agreed_to():
        write_stream("Cancelled: no changes were made.\n", sys.stderr)
        return ExitCode.ERROR
    answer = maintain(
        project,
        plan,
        on_act=lambda part, table: settings.show_step(f"{part}: {table} …"),
        on_start=spark.before_start,
        lock_timeout_s=lock_timeout_s,
    )
    settings.answer(answer)
    return _code(answer)


def _code(result: MaintainResult) -> ExitCode:
    if result.unreadable:
        return ExitCode.ERROR
    if result.refused:
        return ExitCode.FINDINGS
    return ExitCode.CONFLICT if result.interrupted else ExitCode.OK
