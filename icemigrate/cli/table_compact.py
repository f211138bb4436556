"""``icemigrate table compact``."""

from __future__ import annotations

import sys

import click

from icemigrate.cli.approval import ApprovalPrompt, show_changes
from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice, pass_settings
from icemigrate.cli.options import auto_approve_option, format_option, global_options
from icemigrate.cli.streams import write_stream
from icemigrate.cli.table_options import table_argument
from icemigrate.errors import ExitCode

_QUESTION = ApprovalPrompt("Compact this table?", "compacts it")


@click.command("compact")
@table_argument
@click.option(
    "--where",
    metavar="CONDITION",
    help="Rewrite only files that may have rows of this condition, in Spark SQL: `day >= '2026-11-01'`.",
)
@click.option("--dry-run", is_flag=True, help="Show the statement, and change nothing.")
@auto_approve_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions, name: str, where: str | None, dry_run: bool, auto_approve: bool
) -> ExitCode:
    """Write the small data files of a table as fewer large ones, without rows that delete files remove.

    Rows do not change.  It starts Spark, which reads, sorts and writes the files in parallel.
    """
    from icemigrate.commands.table_compact import plan_table_compact, table_compact

    project = settings.open_project()
    plan = plan_table_compact(project, settings.environment, name, where=where)
    if dry_run or not plan.data_files:
        settings.answer(plan)
        return ExitCode.OK
    show_changes(settings, plan, auto_approve=auto_approve)
    if not auto_approve and not _QUESTION.is_agreed_to():
        write_stream("Cancelled: no changes were made.\n", sys.stderr)
        return ExitCode.ERROR
    notice = SparkStartNotice()
    result = table_compact(
        project,
        settings.environment,
        name,
        where=where,
        on_start=lambda: notice.write_once("Starting Spark to rewrite the data files …\n"),
    )
    settings.answer(result)
    return ExitCode.OK
