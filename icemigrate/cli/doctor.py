"""``icemigrate doctor``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.errors import ExitCode


@click.command("doctor")
@click.option("--spark", is_flag=True, help="Also start Spark, and let it read the catalog.")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, spark: bool) -> ExitCode:
    """Check the setup: Java, Spark, jars, catalog, storage, permissions.

    Writes nothing.  Exits with 0 if no check failed, otherwise with 1.
    """
    from icemigrate.commands.doctor import doctor

    result = doctor(settings.open_project(may_be_new=True), settings.environment, spark=spark)
    settings.answer(result)
    return ExitCode.OK if result.ok else ExitCode.ERROR
