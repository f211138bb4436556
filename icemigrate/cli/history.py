"""``icemigrate history``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("history")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions) -> None:
    """Show the history: who did what, when, and how long it took."""
    from icemigrate.commands.status import history

    settings.answer(history(settings.open_project(), settings.environment))
