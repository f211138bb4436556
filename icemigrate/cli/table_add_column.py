"""``icemigrate table add-column``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from icemigrate.cli.column_change import column_change_options, run_column_change
from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.table_options import column_path
from icemigrate.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from icemigrate.project.project_values import ApplyWith


@click.command("add-column")
@click.argument("name")
@click.argument("column", callback=column_path)
@click.argument("type_", metavar="TYPE")
@click.option("--doc", metavar="TEXT", help="The description of the column.")
@click.option(
    "--required",
    "is_required",
    is_flag=True,
    help="Every row has a value. In a table with rows it needs `--default`, and so format version 3.",
)
@click.option("--default", metavar="VALUE", help="The value of older rows, and of new rows without one.")
@click.option(
    "--after", metavar="COLUMN", callback=column_path, help="Put the new column directly after this one."
)
@click.option("--first", "is_first", is_flag=True, help="Put the new column first.")
@column_change_options
@pass_settings
def command(
    settings: InvocationOptions,
    name: str,
    column: str,
    type_: str,
    doc: str | None,
    is_required: bool,
    default: str | None,
    after: str | None,
    is_first: bool,
    allow: tuple[str, ...],
    apply_with: ApplyWith | None,
    lock_timeout_s: float | None,
) -> ExitCode:
    """Add a column to a table, without a migration file.

    COLUMN is a name, or a path into a struct: `address.zip`.  TYPE is written as in a migration file, such as
    `decimal(10,2)`.  The history records a manual change: `drift` shows it, and `drift --accept` declares it.
    """
    from icemigrate.commands.column_changes import column_addition, typed_default

    if after is not None and is_first:
        raise UsageError("`--after` and `--first` cannot be combined", "remove one of them")
    request = column_addition(
        name,
        column,
        type_,
        description=doc,
        is_required=is_required,
        default=None if default is None else typed_default(default, type_),
        after=after,
        is_first=is_first,
    )
    return run_column_change(settings, request, allow, apply_with, lock_timeout_s)
