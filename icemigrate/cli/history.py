"""``icemigrate history``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("history")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings) -> None:
    """Show all that happened: who did what, when, and how long it took."""
    from icemigrate.app.reporting import history

    settings.answer(history(settings.open_project(), settings.environment))
