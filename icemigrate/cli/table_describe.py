"""``icemigrate table describe``."""

from __future__ import annotations

from pathlib import Path

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.table_options import picture_option, table_argument, write_picture


@click.command("describe")
@table_argument
@click.option("--plot", is_flag=True, help="Draw rows, data files and size over time.")
@picture_option("plot")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, name: str, plot: bool, picture: Path | None) -> None:
    """Describe a table: schema with ids, partitioning, sizes, properties, health.

    Health names what makes reads slow or uses storage, with the command that helps.
    """
    from icemigrate.commands.table_describe import table_describe

    result = table_describe(settings.open_project(), settings.environment, name, is_plot=plot)
    if picture is not None:
        from icemigrate.render.growth_svg import growth_svg

        write_picture(settings, picture, growth_svg(result))
        return
    settings.answer(result)
