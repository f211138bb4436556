"""``icemigrate table sql``."""

from __future__ import annotations

from pathlib import Path

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import global_options
from icemigrate.cli.query_options import RowOutput, rows_options


@click.command("sql")
@click.argument("query")
@rows_options
@global_options
@pass_settings
def command(
    settings: InvocationOptions, query: str, row_format: str | None, output: Path | None, explain: bool
) -> None:
    """Run a SELECT on tables of the catalog, as they are or as they were.

    QUERY is DuckDB's SQL. `FOR TIMESTAMP AS OF '2026-01-31T12:00:00Z'` after a table reads its rows at a
    time, `FOR VERSION AS OF` those of a snapshot id, or of a tag or a branch in quotes. It reads tables only:
    no files, no settings.
    """
    from icemigrate.commands.table_sql import table_sql

    output_rows = RowOutput(settings, row_format, output, explain)
    table_sql(settings.open_project(), settings.environment, query, output_rows)
