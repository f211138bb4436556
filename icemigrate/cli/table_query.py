"""``icemigrate table query``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import global_options
from icemigrate.cli.query_options import RowOutput, rows_options
from icemigrate.cli.table_options import ROWS, column_paths, snapshot_option, table_argument

if TYPE_CHECKING:
    from icemigrate.table_data.table_points import ReadPoint


@click.command("query")
@table_argument
@click.option("--where", metavar="CONDITION", help="Rows to show: a condition in DuckDB's SQL.")
@click.option(
    "--columns",
    metavar="NAMES",
    callback=column_paths,
    help="Columns to show, separated by commas; a dot leads into a struct (default: all columns).",
)
@click.option(
    "--limit",
    type=ROWS,
    metavar="NUMBER",
    help="How many rows to show at most.",
)
@snapshot_option("Read the rows of this snapshot")
@click.option(
    "--timestamp",
    metavar="TIME",
    help="Read the rows of the main branch at a time, such as `2026-01-31` (its 00:00), `2026-01-31T12:00` "
    "or `2026-01-31 12:00:00+01:00`; in UTC unless it has a zone.",
)
@click.option("--tag", metavar="NAME", help="Read the rows of a tag.")
@click.option("--branch", metavar="NAME", help="Read the rows of a branch.")
@rows_options
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    name: str,
    where: str | None,
    columns: tuple[str, ...],
    limit: int | None,
    snapshot: str | None,
    timestamp: str | None,
    tag: str | None,
    branch: str | None,
    row_format: str | None,
    output: Path | None,
    explain: bool,
) -> None:
    """Show rows of a table, as they are or as they were.

    An earlier state has the columns that its snapshot was written with.
    """
    from icemigrate.commands.table_query import table_query

    table_query(
        settings.open_project(),
        settings.environment,
        name,
        RowOutput(settings, row_format, output, explain),
        where=where,
        columns=columns,
        limit=limit,
        at=_point(snapshot, timestamp, tag, branch),
    )


def _point(snapshot: str | None, timestamp: str | None, tag: str | None, branch: str | None) -> ReadPoint:
    from icemigrate.table_data.table_points import ReadPoint, parse_timestamp

    at = None if timestamp is None else parse_timestamp(timestamp, "--timestamp")
    return ReadPoint(snapshot=snapshot, timestamp=at, tag=tag, branch=branch)
