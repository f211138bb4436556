"""``icemigrate ingest status``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.errors import ExitCode


@click.command("status")
@click.argument("log", required=False, type=click.Path(path_type=Path))
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where the progress is kept (default: `checkpoint` of the project file, or in the log).",
)
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, log: Path | None, checkpoint: Path | None) -> ExitCode:
    """Show what waits in a write-ahead log, and what is drained, by tenant and kind.

    LOG is the folder of the segments; without it, the project file names the log below `pipeline`.  The
    command reads the log and the checkpoint, not the tables; it needs no Java, and can run beside `ingest`.
    """
    from icemigrate.commands.ingest_status import ingest_status
    from icemigrate.project.tenant_tables import log_of

    folder, progress = log_of(settings.open_project(may_be_new=True).pipeline, log, checkpoint)
    settings.answer(ingest_status(folder, progress, time.time_ns()))
    return ExitCode.OK
