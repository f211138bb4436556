"""``icemigrate adopt-parquet``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice, pass_settings
from icemigrate.cli.options import format_option, global_options, lock_timeout_option


@click.command("adopt-parquet")
@click.argument("path")
@click.option("--into", "table", metavar="TABLE", required=True, help="The table, which exists.")
@click.option(
    "--take-ownership",
    is_flag=True,
    help="Let the table delete the files like its own, when no snapshot needs them (default: set "
    "`gc.enabled` to false, so that no client deletes files of the table).",
)
@click.option("--undo", "is_undo", is_flag=True, help="Take the files of PATH out of the table again.")
@click.option("--dry-run", is_flag=True, help="Check the files, and change nothing.")
@lock_timeout_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    path: str,
    table: str,
    take_ownership: bool,
    is_undo: bool,
    dry_run: bool,
    lock_timeout_s: float | None,
) -> None:
    """Take existing Parquet files into a table as they are, in one snapshot.

    PATH is a file, or a folder with all files below it; folders may be partitioned as in Hive
    (`day=2026-11-01`).  It may be a URL, such as `s3://bucket/visits`, to which the `storage` of the
    environment signs in.  The files stay where they are.  Before anything changes, their columns, required
    values and partitions are checked, and the rows that the table reads are compared with the footers of the
    files.  Files that the table has already are left out.

    `--undo` keeps all other rows of the table.
    """
    from icemigrate.commands.adopt_parquet import AdoptionRequest, adopt_parquet

    if take_ownership and is_undo:
        raise click.UsageError("`--take-ownership` and `--undo` exclude each other")
    settings.answer(
        adopt_parquet(
            settings.open_project(),
            settings.environment,
            AdoptionRequest(path, table, take_ownership, is_undo),
            dry_run=dry_run,
            on_start=SparkStartNotice().before_start,
            lock_timeout_s=lock_timeout_s,
        )
    )
