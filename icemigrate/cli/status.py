"""``icemigrate status``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.errors import ExitCode


@click.command("status")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings) -> ExitCode:
    """Show where each migration and each table stands.

    Ends with 4 when a migration is running or was interrupted.
    """
    from icemigrate.app.reporting import status

    result = status(settings.open_project(), settings.environment)
    settings.answer(result)
    return ExitCode.CONFLICT if result.count("interrupted", "running") else ExitCode.OK
