"""``icemigrate squash``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("squash")
@click.option("--through", metavar="VERSION", required=True, help="The last version that is squashed.")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings, through: str) -> None:
    """Write one file for all files up to a version, and remove these.

    Version control keeps the files that are removed.  An environment where all of them were applied only
    records the new file, an empty one runs it, and one where some were is told which are missing.  Reads
    the files alone: neither a catalog nor Spark.
    """
    from icemigrate.app.squashing import squash

    settings.answer(squash(settings.open_project(), through))
