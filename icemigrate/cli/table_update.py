"""``icemigrate table update``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.row_change_options import spark_note, where_option
from icemigrate.cli.table_options import column_assignments


@click.command("update")
@click.argument("name")
@click.option(
    "--set",
    "updates",
    metavar="COLUMN=EXPRESSION",
    required=True,
    multiple=True,
    callback=column_assignments,
    help="The new value of a column: an expression in DuckDB's SQL over the columns, such as "
    "`'amount=amount * 2'`. Repeatable.",
)
@where_option
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, name: str, updates: dict[str, str], where: str) -> None:
    """Set columns of the rows for which a condition is true, in one snapshot.

    Data files with such rows are written again.  Spark starts for tables of format version 3, and for those
    with merge-on-read or equality deletes.
    """
    from icemigrate.commands.table_row_changes import table_update

    project = settings.open_project()
    note = spark_note(settings)
    settings.answer(table_update(project, settings.environment, name, updates, where, note))
