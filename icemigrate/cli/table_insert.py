"""``icemigrate table insert``."""

from __future__ import annotations

from pathlib import Path

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.row_change_options import data_format_option, data_option, delimiter_option


@click.command("insert")
@click.argument("name")
@data_option
@data_format_option
@delimiter_option
@click.option(
    "--bad-rows",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write rows that do not fit the table to this file, as JSON lines, and insert the others "
    "(default: insert nothing if a row does not fit).",
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
    bad_rows: Path | None,
) -> None:
    """Insert the rows of files into a table, in one snapshot.

    The columns are found by their names; values are cast to the types of the table.  A column that a file
    lacks is null, or has its default.
    """
    from icemigrate.commands.table_insert import table_insert

    settings.answer(
        table_insert(
            settings.open_project(),
            settings.environment,
            name,
            data,
            data_format=data_format,
            delimiter=delimiter,
            bad_rows=bad_rows,
        )
    )
