"""``icemigrate doctor``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.errors import ExitCode


@click.command("doctor")
@click.option("--spark", is_flag=True, help="Start Spark too, and let it read the catalog.")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings, spark: bool) -> ExitCode:
    """Say what works here: Java, Spark, jars, catalog, storage, rights.

    Writes nothing.  Ends with 0 when nothing that was tried failed, with 1 otherwise.
    """
    from icemigrate.app.doctor import doctor

    result = doctor(settings.open_project(), settings.environment, spark=spark)
    settings.answer(result)
    return ExitCode.OK if result.ok else ExitCode.ERROR
