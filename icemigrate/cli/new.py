"""``icemigrate new``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write_stream


@click.command("new")
@click.argument("description")
@global_options
@pass_settings
def command(settings: InvocationOptions, description: str) -> None:
    """Write the next numbered migration file.

    DESCRIPTION is a short phrase, from which the file gets its name: `icemigrate new "rename volume"`.
    """
    from icemigrate.commands.init import new

    write_stream(f"{new(settings.open_project(may_be_new=True), description)}\n")
    # Standard output is only the path, for starting an editor with it.
    settings.show_progress("Edit it, then run `icemigrate check --fix` to update the lock file.\n")
