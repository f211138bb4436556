"""``icemigrate table manifests``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.table_options import limit_option, snapshot_option, table_argument


@click.command("manifests")
@table_argument
@snapshot_option("Show this snapshot")
@limit_option("manifests", 50)
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, name: str, snapshot: str | None, limit: int | None) -> None:
    """List the manifests of a table.

    JSON has their whole paths, and numbers of rows.
    """
    from icemigrate.commands.table_manifests import table_manifests

    settings.answer(
        table_manifests(settings.open_project(), settings.environment, name, snapshot=snapshot, limit=limit)
    )
