"""``icemigrate table compare``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.option_types import WholeNumber
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.table_options import column_names, snapshot_option, table_argument


@click.command("compare")
@table_argument
@snapshot_option("The first snapshot", "--from", "before", required=True)
@click.option(
    "--to", "after", metavar="SNAPSHOT", default="main", help="The second snapshot (default: `main`)."
)
@click.option(
    "--key",
    metavar="COLUMNS",
    callback=column_names,
    help="Columns that identify a row, separated by commas. With them, changed rows are found.",
)
@click.option("--no-rows", is_flag=True, help="Compare schemas and files only; reads no data file.")
@click.option(
    "--distinct", is_flag=True, help="Count distinct values also of snapshots with more than 2,000,000 rows."
)
@click.option(
    "--samples",
    type=WholeNumber(0, 1_000, example="5"),
    default=5,
    show_default=True,
    metavar="NUMBER",
    help="How many rows of each change to show at most.",
)
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    name: str,
    before: str,
    after: str,
    key: tuple[str, ...],
    no_rows: bool,
    distinct: bool,
    samples: int,
) -> None:
    """Compare two snapshots of a table: schema, files, rows, and counts per column.

    Columns are compared by field id, under the names of the second snapshot.
    """
    from icemigrate.commands.table_compare import table_compare

    settings.answer(
        table_compare(
            settings.open_project(),
            settings.environment,
            name,
            before,
            after,
            key=key,
            with_rows=not no_rows,
            with_distinct=distinct,
            samples=samples,
        )
    )
