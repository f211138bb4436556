"""``icemigrate table create``."""

from __future__ import annotations

from pathlib import Path

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.row_change_options import delimiter_option


@click.command("create")
@click.argument("name")
@click.option(
    "--schema",
    metavar="FILE",
    type=click.Path(path_type=Path),
    required=True,
    help="Iceberg's schema as JSON; the keys of a migration's entry (`columns` and others) as YAML or "
    "JSON; or a Parquet or CSV file with the columns.",
)
@delimiter_option
@click.option("--dry-run", is_flag=True, help="Show the columns and their types, and create nothing.")
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions, name: str, schema: Path, delimiter: str | None, dry_run: bool
) -> None:
    """Create a table that no migration declares.

    `icemigrate import NAME` writes a migration that declares it.
    """
    from icemigrate.commands.table_create import table_create

    project = settings.open_project()
    settings.answer(
        table_create(project, settings.environment, name, schema, delimiter=delimiter, dry_run=dry_run)
    )
