"""``icemigrate table rollback``."""

from __future__ import annotations

import sys

import click

from icemigrate.cli.approval import ApprovalPrompt, show_changes
from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import auto_approve_option, format_option, global_options
from icemigrate.cli.streams import write_stream
from icemigrate.cli.table_options import snapshot_option, table_argument
from icemigrate.errors import ExitCode

_QUESTION = ApprovalPrompt("Roll this table back?", "rolls it back")


@click.command("rollback")
@table_argument
@snapshot_option("Set main to this snapshot", required=True)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@auto_approve_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions, name: str, snapshot: str, dry_run: bool, auto_approve: bool
) -> ExitCode:
    """Roll back a table to a snapshot: set its main branch to an ancestor of its current snapshot.

    Columns, properties, tags, other branches and all snapshots stay.  A descendant of the current snapshot
    is accepted too, so the command undoes itself.  `icemigrate rollback` undoes migrations.
    """
    from icemigrate.commands.table_rollback import plan_table_rollback, table_rollback

    project = settings.open_project()
    plan = plan_table_rollback(project, settings.environment, name, snapshot)
    if dry_run or plan.is_unchanged:
        settings.answer(plan)
        return ExitCode.OK
    if not auto_approve:  # the result says the same
        show_changes(settings, plan, auto_approve=False)
        if not _QUESTION.is_agreed_to():
            write_stream("Cancelled: no changes were made.\n", sys.stderr)
            return ExitCode.ERROR
    settings.answer(table_rollback(project, settings.environment, plan))
    return ExitCode.OK
