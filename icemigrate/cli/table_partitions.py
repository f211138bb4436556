"""``icemigrate table partitions``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.table_options import limit_option, snapshot_option, table_argument


@click.command("partitions")
@table_argument
@snapshot_option("Show this snapshot")
@limit_option("partitions", 50, "the largest ones")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, name: str, snapshot: str | None, limit: int | None) -> None:
    """List the partitions of a table, with files, rows and sizes.

    The largest partition is first.
    """
    from icemigrate.commands.table_partitions import table_partitions

    settings.answer(
        table_partitions(settings.open_project(), settings.environment, name, snapshot=snapshot, limit=limit)
    )
