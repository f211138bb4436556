"""``icemigrate status``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.errors import ExitCode


@click.command("status")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions) -> ExitCode:
    """Show the state of each migration and each table.

    With --verbose, also shows which rollbacks cannot restore everything, because a dropped table was removed
    from the trash, a snapshot has expired, or a compaction wrote files without a dropped column.  Without it,
    the number of such rollbacks among the last ten versions is shown.

    Exits with 1 if a table cannot be read, otherwise with 4 if a migration is running or was interrupted.
    """
    from icemigrate.commands.status import status

    result = status(settings.open_project(), settings.environment, details=settings.verbose)
    settings.answer(result)
    if any(table.unreadable for table in result.tables):
        return ExitCode.ERROR
    return ExitCode.CONFLICT if result.count("interrupted", "running") else ExitCode.OK
