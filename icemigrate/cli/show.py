"""``icemigrate show``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write_stream


@click.command("show")
@click.argument("table", required=False)
@click.option("--at", metavar="VERSION", help="Show the state after this version (default: the last).")
@global_options
@pass_settings
def command(settings: InvocationOptions, table: str | None, at: str | None) -> None:
    """Print the declared tables as YAML that is a valid migration file.

    TABLE is a name such as `market_data.trades` (default: all tables).  Equal tables of a template are one
    entry with `for_each`; --verbose shows each of them.
    """
    from icemigrate.commands.show import show

    write_stream(show(settings.open_project(), table, at, shows_all=settings.verbose))
