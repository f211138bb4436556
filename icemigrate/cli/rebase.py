"""``icemigrate rebase``."""

from __future__ import annotations

import sys

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.streams import write_stream


@click.command("rebase")
@click.argument("migrations", metavar="[VERSION|FILE]...", nargs=-1)
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, migrations: tuple[str, ...]) -> None:
    """Renumber migration files that are out of order.

    Renames files and keeps their content, so version control sees a rename.  Without arguments, renames the
    files that `plan` refuses as late, and files whose number another file has.  Applied migrations keep their
    numbers.
    """
    from icemigrate.commands.rebase import rebase

    result = rebase(settings.open_project(), migrations, settings.environment)
    settings.answer(result)
    if result.renamed:
        write_stream(
            "Next: run `icemigrate check --fix`, then commit the renamed files with the lock file.\n",
            sys.stderr,
        )
