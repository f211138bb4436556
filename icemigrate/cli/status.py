"""``icemigrate status``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("status")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings) -> None:
    """Show where each migration and each table stands."""
    from icemigrate.app.reporting import status

    settings.answer(status(settings.open_project(), settings.environment))
