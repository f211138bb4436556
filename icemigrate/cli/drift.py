"""``icemigrate drift``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.errors import ExitCode


@click.command("drift")
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.option("--accept", is_flag=True, help="Write the next migration, one that declares what is there.")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings, tables: tuple[str, ...], accept: bool) -> ExitCode:
    """Show what others did to the tables since they were recorded.

    By table, column and property; with TABLE, a declared name, of that one alone.  What a pending migration
    wants and somebody did already is no drift, nor is what no file ever declared; both are told.

    Ends with 4 when there is drift, or when a migration is running or was interrupted.  Writes nothing but
    the file of `--accept`; starts no Spark.
    """
    project = settings.open_project()
    if accept:
        from icemigrate.app.accepting import accept_drift

        settings.answer(accept_drift(project, settings.environment, tables))
        return ExitCode.OK
    from icemigrate.app.drifting import drift

    result = drift(project, settings.environment, tables)
    settings.answer(result)
    return ExitCode.CONFLICT if result.drifted or result.interrupted else ExitCode.OK
