"""``icemigrate plan``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icemigrate.cli.context import Settings, SparkTold, pass_settings
from icemigrate.cli.options import (
    format_option,
    global_options,
    overwrite_option,
    redo_option,
    require_one_version,
    to_option,
)
from icemigrate.cli.progress import progress
from icemigrate.cli.reconciling import reconcile_options, reconcile_plan, require_alone
from icemigrate.cli.streams import write
from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.plan import Plan
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
    help="Start Spark and run the plan on copies that have no rows; touches no table.",
)
@reconcile_options
@click.option("--detailed-exitcode", is_flag=True, help="End with 2 when there is something to do.")
@format_option("text", "json", "markdown")
@global_options
@pass_settings
def command(
    settings: Settings,
    out: Path | None,
    to: str | None,
    overwrite: tuple[str, ...],
    redo: str | None,
    rehearse: bool,
    reconcile: bool,
    tables: tuple[str, ...],
    allow: tuple[str, ...],
    detailed_exitcode: bool,
) -> ExitCode:
    """Show what the pending migrations would do.

    Ends with 3 when a file must be corrected first (a problem, a missing `allow`), else with 4 when the
    catalog conflicts with a migration, or when a rollback is running or was interrupted.  Writes nothing but
    the file of `--out`.
    """
    from icemigrate.app.planning import plan
    from icemigrate.app.saving import save_plan

    project = settings.open_project()
    require_alone(reconcile, tables, allow, to, overwrite, redo, rehearse)
    require_one_version(redo, to)
    if reconcile:
        result = reconcile_plan(settings, project, tables, allow, SparkTold())
    else:
        result = plan(project, settings.environment, to=to, overwrite=overwrite, redo=redo)
    settings.answer(result)
    if not result.ready:
        if out is not None:
            write(f"{out} was not written: only a plan that can be applied is saved.\n", sys.stderr)
        return result.obstacle
    if rehearse and not result.is_empty:
        _rehearse(settings, project, result.plan)
    if out is not None:
        save_plan(result, out)
    return ExitCode.CHANGES if detailed_exitcode and not result.is_empty else ExitCode.OK


def _rehearse(settings: Settings, project: Project, plan: Plan) -> None:
    from icemigrate.app.rehearsing import rehearse
    from icemigrate.render.words import count

    with progress(settings) as shown:
        done = rehearse(project, plan, on_event=shown, on_start=SparkTold().tell_of_start)
    what = f"{count(done.statements, 'statement')} on {count(done.tables, 'table')}"
    write(f"Rehearsed {what}: all of it would run.\n", sys.stderr)
