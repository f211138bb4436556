"""``icemigrate lock``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write_stream


@click.command("lock")
@global_options
@pass_settings
def command(settings: InvocationOptions) -> None:
    """Write the lock file from the current migration files.

    The lock file makes branches conflict that add migrations at the same time.  `new` and other commands that
    write migrations keep it up to date.  Reads only files, and exits with 3 if they have errors.
    """
    from icemigrate.commands.check import lock

    write_stream(f"{lock(settings.open_project())}\n")
