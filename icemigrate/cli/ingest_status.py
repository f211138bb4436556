"""``icemigrate ingest status``."""

from __future__ import annotations

import time

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import (
    checkpoint_option,
    format_option,
    global_options,
    log_argument,
    sources_option,
)
from icemigrate.errors import ExitCode


@click.command("status")
@log_argument
@sources_option
@checkpoint_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions, log: str | None, sources: tuple[str, ...], checkpoint: str | None
) -> ExitCode:
    """Show what waits in a write-ahead log, and what is drained, by tenant and kind.

    LOG is the folder of the segments, or its URL; without it, the project file names the log below
    `pipeline`.  The command reads the log and the checkpoint, not the tables; it needs no Java, and can run
    beside `ingest`.  It also shows how much of the files of the Collector is not in the log, and
    how many records of Kafka wait, if the package `kafka-python` is installed.

    Exits with 0, also if entries wait or a table has a problem.
    """
    from icemigrate.commands.ingest import storage_of, telemetry_sources
    from icemigrate.commands.ingest_status import ingest_status
    from icemigrate.commands.unfilled_columns import declared_unfilled_columns
    from icemigrate.project.tenant_tables import log_of, tables_of

    project = settings.open_project(may_be_new=True)
    folder, progress = log_of(
        project.pipeline, log, checkpoint, lambda: storage_of(project, settings.environment)
    )
    unfilled = declared_unfilled_columns(project, tables_of(project.pipeline))
    found = telemetry_sources(project, sources)
    settings.answer(ingest_status(folder, progress, time.time_ns(), unfilled, found))
    return ExitCode.OK
