"""``icemigrate table snapshots``."""

from __future__ import annotations

from pathlib import Path

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.table_options import limit_option, picture_option, table_argument, write_picture


@click.command("snapshots")
@table_argument
@click.option("--graph", is_flag=True, help="Draw branches, tags and snapshots, the newest first.")
@limit_option("snapshots", 100, "the newest ones")
@picture_option("graph")
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions, name: str, graph: bool, limit: int | None, picture: Path | None
) -> None:
    """List the snapshots of a table, with its branches and tags.

    The oldest snapshot is first; with `--graph` the newest.
    """
    from icemigrate.commands.table_snapshots import table_snapshots

    result = table_snapshots(
        settings.open_project(),
        settings.environment,
        name,
        limit=limit,
        is_graph=graph or picture is not None,
    )
    if picture is not None:
        from icemigrate.render.snapshot_svg import snapshots_svg

        write_picture(settings, picture, snapshots_svg(result))
        return
    settings.answer(result)
