"""``icemigrate drift``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.errors import ExitCode


@click.command("drift")
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.option("--accept", is_flag=True, help="Write the next migration, which declares the current state.")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, tables: tuple[str, ...], accept: bool) -> ExitCode:
    """Show what other clients changed in the tables since they were recorded.

    By table, column and property; with TABLE, a declared name, for that table alone.  Also shows changes that
    a pending migration declares, and columns and properties that no migration declared; these are not drift.

    Exits with 1 if a table cannot be read, otherwise with 4 if there is drift, or if a migration is running
    or was interrupted.  Writes only the file of `--accept`; does not start Spark.
    """
    project = settings.open_project()
    if accept:
        from icemigrate.commands.drift_accept import accept_drift

        settings.answer(accept_drift(project, settings.environment, tables))
        return ExitCode.OK
    from icemigrate.commands.drift import drift

    result = drift(project, settings.environment, tables)
    settings.answer(result)
    if result.unreadable:
        return ExitCode.ERROR
    return ExitCode.CONFLICT if result.drifted or result.interrupted else ExitCode.OK
