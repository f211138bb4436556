"""``icemigrate table snapshots``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("snapshots")
@click.argument("name")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, name: str) -> None:
    """List the snapshots of a table, with its branches and tags.

    The oldest snapshot is first.
    """
    from icemigrate.commands.table_snapshots import table_snapshots

    settings.answer(table_snapshots(settings.open_project(), settings.environment, name))
