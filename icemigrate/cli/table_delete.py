"""``icemigrate table delete``."""

from __future__ import annotations

from collections.abc import Callable

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options

where_option = click.option(
    "--where",
    metavar="CONDITION",
    required=True,
    help="The rows that change: a condition in DuckDB's SQL over the columns, such as `\"city = 'Oslo'\"`; "
    "`true` for all. Rows for which it is null stay.",
)


@click.command("delete")
@click.argument("name")
@where_option
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, name: str, where: str) -> None:
    """Delete the rows for which a condition is true, in one snapshot.

    Data files with such rows are written again without them.  Spark starts for tables of format version 3,
    and for those with merge-on-read or equality deletes.
    """
    from icemigrate.commands.table_row_changes import table_delete

    project = settings.open_project()
    settings.answer(table_delete(project, settings.environment, name, where, spark_note(settings)))


def spark_note(settings: InvocationOptions) -> Callable[[str], None]:
    """What shows on standard error why Spark starts."""

    def show(reason: str) -> None:
        settings.show_step(f"Starting Spark because {reason} …")

    return show
