"""``icemigrate table drop-column``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from icemigrate.cli.column_change import column_change_options, run_column_change
from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.table_options import column_path
from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.project.project_values import ApplyWith


@click.command("drop-column")
@click.argument("name")
@click.argument("column", callback=column_path)
@column_change_options
@pass_settings
def command(
    settings: InvocationOptions,
    name: str,
    column: str,
    allow: tuple[str, ...],
    apply_with: ApplyWith | None,
    lock_timeout_s: float | None,
) -> ExitCode:
    """Drop a column of a table, without a migration file.

    COLUMN is a name, or a path into a struct: `address.zip`.  Asks for approval, unless `--allow` consents.
    The history records a manual change: `drift` shows it, and `drift --accept` declares it.
    """
    from icemigrate.commands.column_changes import ColumnChanges

    request = ColumnChanges(name, {"drop_columns": [column]})
    return run_column_change(settings, request, allow, apply_with, lock_timeout_s)
