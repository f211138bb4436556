"""``icemigrate plan``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice, pass_settings
from icemigrate.cli.options import (
    format_option,
    global_options,
    overwrite_option,
    redo_option,
    require_only_redo,
    to_option,
)
from icemigrate.cli.progress import show_progress
from icemigrate.cli.reconcile import reconcile_options, reconcile_plan, require_compatible_options
from icemigrate.cli.streams import write_stream
from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.planning.plan import Plan
    from icemigrate.project import Project


@click.command("plan")
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path), help="Save the plan for `apply FILE`."
)
@to_option
@overwrite_option
@redo_option
@click.option(
    "--rehearse",
    is_flag=True,
    help="Start Spark and run the plan on empty copies of the tables; changes no table.",
)
@reconcile_options
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 if there is something to apply.")
@format_option("text", "json", "markdown")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    out: Path | None,
    to: str | None,
    overwrite: tuple[str, ...],
    redo: tuple[str, ...],
    rehearse: bool,
    reconcile: bool,
    tables: tuple[str, ...],
    allow: tuple[str, ...],
    detailed_exitcode: bool,
) -> ExitCode:
    """Show what the pending migrations would change.

    Exits with 3 if a file must be corrected first (a problem, a missing `allow`), otherwise with 4 if the
    catalog conflicts with a migration, or if a rollback is running or was interrupted.  Writes only the file
    of `--out`.
    """
    from icemigrate.commands.plan import plan
    from icemigrate.commands.saved_plans import save_plan

    project = settings.open_project()
    require_compatible_options(reconcile, tables, allow, to, overwrite, redo, rehearse)
    require_only_redo(redo, to)
    if reconcile:
        result = reconcile_plan(settings, project, tables, allow, SparkStartNotice())
    else:
        result = plan(project, settings.environment, to=to, overwrite=overwrite, redo=redo)
    settings.answer(result)
    if not result.ready:
        if out is not None:
            write_stream(f"{out} was not written: only a plan that can be applied is saved.\n", sys.stderr)
        return result.obstacle
    if rehearse and not result.is_empty:
        _rehearse(settings, project, result.plan)
    if out is not None:
        save_plan(result, out)
    return ExitCode.CHANGES if detailed_exitcode and not result.is_empty else ExitCode.OK


def _rehearse(settings: InvocationOptions, project: Project, plan: Plan) -> None:
    from icemigrate.commands.rehearse import rehearse
    from icemigrate.diagnostics import format_count

    with show_progress(settings) as shown:
        done = rehearse(project, plan, on_event=shown, on_start=SparkStartNotice().before_start)
    what = f"{format_count(done.statements, 'statement')} on {format_count(done.tables, 'table')}"
    write_stream(f"Rehearsed {what}: all statements would succeed.\n", sys.stderr)
