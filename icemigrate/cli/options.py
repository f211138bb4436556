"""Options that several commands share."""

from __future__ import annotations

import click

to_option = click.option(
    "--to", metavar="VERSION", help="Pending migrations up to this one; without it all of them."
)
overwrite_option = click.option(
    "--overwrite",
    metavar="FACT",
    multiple=True,
    help="Set this fact to what the file says, whatever the catalog has now. May be repeated; "
    "the conflict names it: market_data.trades:columns.price.type.",
)
