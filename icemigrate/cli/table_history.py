"""``icemigrate table history``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.table_options import limit_option, table_argument


@click.command("history")
@table_argument
@limit_option("events", 100, "the newest ones")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, name: str, limit: int | None) -> None:
    """Show the table history: every schema, partition spec, snapshot, branch and tag, in time order.

    It is read from the metadata files that the table's log names.  The oldest event is first.  `icemigrate
    history` shows what a project applied.
    """
    from icemigrate.commands.table_history import table_history

    settings.answer(table_history(settings.open_project(), settings.environment, name, limit=limit))
