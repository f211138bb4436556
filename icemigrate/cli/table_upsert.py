"""``icemigrate table upsert``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.row_change_options import (
    data_format_option,
    data_option,
    delimiter_option,
    spark_note,
)
from icemigrate.cli.table_options import column_names


@click.command("upsert")
@click.argument("name")
@data_option
@data_format_option
@delimiter_option
@click.option(
    "--on",
    metavar="COLUMN[,COLUMN]",
    required=True,
    callback=column_names,
    help="The columns that identify a row. No two rows of the data may have the same values in them.",
)
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    name: str,
    data: tuple[str, ...],
    data_format: str | None,
    delimiter: str | None,
    on: tuple[str, ...],
) -> None:
    """Update the rows that have the keys of the data's rows, and insert the others, in one snapshot.

    A column that the data lacks keeps its values.  A row that the table has already is not written again.
    """
    from icemigrate.commands.table_row_changes import table_upsert

    project = settings.open_project()
    note = spark_note(settings)
    settings.answer(table_upsert(project, settings.environment, name, data, on, note, data_format, delimiter))
