"""``icemigrate table delete``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.row_change_options import spark_note, where_option


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
