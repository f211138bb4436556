"""``icemigrate show``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write


@click.command("show")
@click.argument("table", required=False)
@click.option("--at", metavar="VERSION", help="As declared after this migration; without it after the last.")
@global_options
@pass_settings
def command(settings: Settings, table: str | None, at: str | None) -> None:
    """Print the declared tables as YAML that is itself a valid declaration.

    TABLE is a name such as `market_data.trades`; without it all tables are shown.
    """
    from icemigrate.app.showing import show

    write(show(settings.open_project(), table, at))
