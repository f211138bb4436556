"""``icemigrate revert``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("revert")
@click.argument("version")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, version: str) -> None:
    """Write a migration that undoes VERSION.

    The new file is reviewed like any other and applied in every environment; later migrations stay.  Reads
    only files: needs no catalog and no Spark.
    """
    from icemigrate.commands.revert import revert

    settings.answer(revert(settings.open_project(), version))
