"""``icemigrate rebase``."""

from __future__ import annotations

import sys

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.streams import write


@click.command("rebase")
@click.argument("migrations", metavar="[VERSION|FILE]...", nargs=-1)
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings, migrations: tuple[str, ...]) -> None:
    """Give files that came late the next numbers.

    A file is renamed and its content stays, so version control sees a rename.  Without arguments those are
    renamed that `plan` refuses as late, and those whose number another file has.  What was applied keeps its
    number.
    """
    from icemigrate.app.rebasing import rebase

    result = rebase(settings.open_project(), migrations, settings.environment)
    settings.answer(result)
    if result.renamed:
        write("Next: `icemigrate check --fix`, then commit the new names with the lock file.\n", sys.stderr)
