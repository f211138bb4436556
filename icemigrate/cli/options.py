"""Options that several commands share."""

from __future__ import annotations

import click

to_option = click.option(
    "--to", metavar="VERSION", help="Pending migrations up to this one; without it all of them."
)
lock_timeout_option = click.option(
    "--lock-timeout",
    "lock_timeout_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="How long to wait for somebody else's lock; 0 for not at all. Without it 120: longer than it takes "
    "to see that a holder is gone.",
)
overwrite_option = click.option(
    "--overwrite",
    metavar="FACT",
    multiple=True,
    help="Set this fact to what the file says, whatever the catalog has now. May be repeated; "
    "the conflict names it: market_data.trades:columns.price.type.",
)
