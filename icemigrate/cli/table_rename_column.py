"""``icemigrate table rename-column``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from icemigrate.cli.column_change import column_change_options, run_column_change
from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.table_options import column_path
from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.project.project_values import ApplyWith


@click.command("rename-column")
@click.argument("name")
@click.argument("old", callback=column_path)
@click.argument("new", callback=column_path)
@column_change_options
@pass_settings
def command(
    settings: InvocationOptions,
    name: str,
    old: str,
    new: str,
    allow: tuple[str, ...],
    apply_with: ApplyWith | None,
    lock_timeout_s: float | None,
) -> ExitCode:
    """Rename a column of a table, without a migration file.

    OLD is a name, or a path into a struct: `address.zip`; NEW is the last part alone.  The column keeps its
    field id and its values.  The history records a manual change: `drift` shows it, and `drift --accept`
    declares it.
    """
    from icemigrate.commands.column_changes import ColumnChanges

    request = ColumnChanges(name, {"renames": {old: new}})
    return run_column_change(settings, request, allow, apply_with, lock_timeout_s)
