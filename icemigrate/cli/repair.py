"""``icemigrate repair``."""

from __future__ import annotations

import sys

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options, lock_timeout_option
from icemigrate.cli.streams import write


@click.command("repair")
@lock_timeout_option
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings, lock_timeout_s: float | None) -> None:
    """Accept applied files that were edited, where they declare what they declared before.

    No table is touched: the history gets a row for each of them.  Ends with 3, having recorded nothing, when
    one declares something else; what differs is said.
    """
    from icemigrate.app.repairing import repair

    result = repair(
        settings.open_project(),
        settings.environment,
        on_start=lambda: write("Starting Spark, to write to the history …\n", sys.stderr),
        lock_timeout_s=lock_timeout_s,
    )
    settings.answer(result)
