"""``icemigrate reset``."""

from __future__ import annotations

import sys

import click

from icemigrate.cli.approval import ApprovalPrompt, show_changes
from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice, pass_settings
from icemigrate.cli.options import format_option, global_options, lock_timeout_option
from icemigrate.cli.streams import write_stream
from icemigrate.errors import ExitCode

_QUESTION = ApprovalPrompt("Move these tables to the trash and empty the history?", "resets the environment")


@click.command("reset")
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing. Needs no terminal.")
# Not the shared option: neither `-y` nor a variable that is set for `apply` approves a reset.
@click.option("--auto-approve", is_flag=True, help="Skip the approval prompt.")
@lock_timeout_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions, dry_run: bool, auto_approve: bool, lock_timeout_s: float | None
) -> ExitCode:
    """Move all tables of a disposable environment to the trash, and empty the history.

    Plans, asks, runs and records.  Tables that the project adopted stay, without its tags.  Needs
    `disposable: true` in the environment.  If it is stopped, the next run does the rest.
    """
    from icemigrate.commands.reset import plan_reset, reset

    project = settings.open_project()
    plan = plan_reset(project, settings.environment)
    if dry_run or plan.is_empty:
        settings.answer(plan)
        return ExitCode.OK
    show_changes(settings, plan, auto_approve=auto_approve)
    if not auto_approve and not _QUESTION.is_agreed_to():
        write_stream("Cancelled: no changes were made.\n", sys.stderr)
        return ExitCode.ERROR
    answer = reset(
        project,
        plan,
        on_table=lambda table: settings.show_step(f"reset: {table} …"),
        on_start=SparkStartNotice().before_start,
        lock_timeout_s=lock_timeout_s,
    )
    settings.answer(answer)
    return ExitCode.OK
