"""``icemigrate generate``."""

from __future__ import annotations

from pathlib import Path

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.option_types import WholeNumber
from icemigrate.cli.options import format_option, global_options


@click.command("generate")
@click.argument("table")
@click.option(
    "--rows",
    type=WholeNumber(example="1000"),
    metavar="COUNT",
    required=True,
    help="How many rows to generate.",
)
@click.option(
    "--seed",
    type=WholeNumber(example="7"),
    metavar="NUMBER",
    default=0,
    show_default=True,
    help="The same seed gives the same rows.",
)
@click.option(
    "--first-row",
    type=WholeNumber(example="1000"),
    metavar="NUMBER",
    default=0,
    show_default=True,
    help="The number of the first row: `1000` continues after 1,000 rows.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The Parquet file (default: TABLE.parquet in the current folder).",
)
@click.option(
    "--insert", is_flag=True, help="Insert the rows into the table, in one snapshot, and write no file."
)
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    table: str,
    rows: int,
    seed: int,
    first_row: int,
    output: Path | None,
    insert: bool,
) -> None:
    """Generate rows of test data for a table: a Parquet file, or rows of the table.

    TABLE is a name such as `market_data.trades`: a table of the catalog, or one that only migration files
    declare.  The rows are the same on every machine, with and without the native module, which is faster.
    """
    from icemigrate.commands.generate import generate

    settings.answer(
        generate(
            settings.open_project(),
            settings.environment,
            table,
            rows,
            seed=seed,
            first_row=first_row,
            output=output,
            insert=insert,
        )
    )
