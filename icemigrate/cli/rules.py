"""``icemigrate rules``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("rules")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions) -> None:
    """List the rules of `check` and their levels.

    Shows the levels and options of this project; set them under `rules` in the project file.
    """
    from icemigrate.commands.explain import rules

    settings.answer(rules(settings.open_project(may_be_new=True)))
