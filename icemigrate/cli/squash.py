"""``icemigrate squash``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("squash")
@click.option("--through", metavar="VERSION", required=True, help="Last version to squash.")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, through: str) -> None:
    """Replace all files up to a version with one file.

    Version control keeps the removed files.  An environment where all of them are applied only records the
    new file, an empty environment runs it, and an environment where some are applied refuses it and lists the
    missing ones.  Reads only files: needs no catalog and no Spark.
    """
    from icemigrate.commands.squash import squash

    settings.answer(squash(settings.open_project(), through))
