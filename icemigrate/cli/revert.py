"""``icemigrate revert``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("revert")
@click.argument("version")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings, version: str) -> None:
    """Write the next migration file, one that undoes VERSION.

    It is reviewed like any other and travels to every environment; later migrations stay.  Reads the files
    alone: neither a catalog nor Spark.
    """
    from icemigrate.app.reverting import revert

    settings.answer(revert(settings.open_project(), version))
