"""``icemigrate table files``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.table_options import limit_option, snapshot_option, table_argument


@click.command("files")
@table_argument
@snapshot_option("Show this snapshot")
@limit_option("files", 50)
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, name: str, snapshot: str | None, limit: int | None) -> None:
    """List the data files and delete files of a table.

    JSON has their whole paths.
    """
    from icemigrate.commands.table_files import table_files

    settings.answer(
        table_files(settings.open_project(), settings.environment, name, snapshot=snapshot, limit=limit)
    )
