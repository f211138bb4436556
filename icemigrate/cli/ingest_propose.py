"""``icemigrate ingest propose``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.option_types import WholeNumber
from icemigrate.cli.options import (
    checkpoint_option,
    format_option,
    global_options,
    log_argument,
    print_file_option,
)
from icemigrate.errors import ExitCode


@click.command("propose")
@log_argument
@checkpoint_option
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    metavar="NAME",
    help="Propose a column for this attribute, such as `http.route` or `resource_attributes.host.name`. "
    "Repeatable (default: all that are counted).",
)
@click.option(
    "--limit",
    type=WholeNumber(1, 1000, example="50"),
    metavar="N",
    default=50,
    help="How many columns the tables of a kind get at most (default: 50). The attributes of most tenants "
    "and rows come first.",
)
@print_file_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    log: str | None,
    checkpoint: str | None,
    attributes: tuple[str, ...],
    limit: int,
    dry_run: bool,
) -> ExitCode:
    """Write a migration with columns for attributes that no column has.

    LOG is the folder of the segments, or its URL; without it, the project file names the log below
    `pipeline`.  `ingest` counts the attributes of kinds with `unknown_attributes: column`.  The migration
    waits for a review and `apply`, as any other.  The command reads the migration files and the checkpoint;
    it needs no Java, and can run beside `ingest`.
    """
    from icemigrate.commands.ingest import storage_of
    from icemigrate.commands.ingest_propose import ProposeOptions, propose_columns
    from icemigrate.project.tenant_tables import log_of

    project = settings.open_project()
    _, progress = log_of(project.pipeline, log, checkpoint, lambda: storage_of(project, settings.environment))
    settings.answer(propose_columns(project, progress, ProposeOptions(attributes, limit, dry_run)))
    return ExitCode.OK
