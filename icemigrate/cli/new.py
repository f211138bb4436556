"""``icemigrate new``."""

from __future__ import annotations

import sys

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write


@click.command("new")
@click.argument("description")
@global_options
@pass_settings
def command(settings: Settings, description: str) -> None:
    """Write the next numbered migration file.

    DESCRIPTION says in a few words what it is for, and names the file: `icemigrate new "rename volume"`.
    """
    from icemigrate.app.starting import new

    write(f"{new(settings.open_project(), description)}\n")
    # Standard output is the path alone, for an editor to be started with.
    write("Edit it, then `icemigrate check --fix` notes in the lock file what it says.\n", sys.stderr)
