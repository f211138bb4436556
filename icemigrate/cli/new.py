"""``icemigrate new``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, global_options, pass_settings, write


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
