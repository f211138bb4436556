"""``icemigrate table expire``."""

from __future__ import annotations

import sys

import click

from icemigrate.cli.approval import ApprovalPrompt, show_changes
from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.option_types import DecimalNumber
from icemigrate.cli.options import auto_approve_option, format_option, global_options
from icemigrate.cli.streams import write_stream
from icemigrate.cli.table_options import table_argument
from icemigrate.errors import ExitCode

_QUESTION = ApprovalPrompt("Expire these snapshots and delete their files?", "expires them")


@click.command("expire")
@table_argument
@click.option(
    "--days",
    type=DecimalNumber("a number of days, such as `7` or `0.5`"),
    metavar="NUMBER",
    required=True,
    help="Expire snapshots that are older than this number of days.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@auto_approve_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions, name: str, days: float, dry_run: bool, auto_approve: bool
) -> ExitCode:
    """Expire old snapshots of a table, and delete the files that only they need.

    Current rows stay, and so do snapshots that tags, branches or a rollback of a migration need.  Works
    without Java.  It cannot be undone.
    """
    from icemigrate.commands.table_expire import plan_table_expire, table_expire

    project = settings.open_project()
    plan = plan_table_expire(project, settings.environment, name, days)
    if dry_run or plan.is_empty:
        settings.answer(plan)
        return ExitCode.OK
    if not auto_approve:  # the result says the same
        show_changes(settings, plan, auto_approve=False)
        if not _QUESTION.is_agreed_to():
            write_stream("Cancelled: no changes were made.\n", sys.stderr)
            return ExitCode.ERROR
    settings.answer(table_expire(project, settings.environment, days, plan))
    return ExitCode.OK
