"""``icemigrate rules``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("rules")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings) -> None:
    """List the rules of `check` and how much each weighs.

    Levels and what a rule goes by are shown as this project has them; the project file changes them under
    `rules`.
    """
    from icemigrate.app.explaining import rules

    settings.answer(rules(settings.open_project()))
