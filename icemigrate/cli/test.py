"""``icemigrate test``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.errors import ExitCode


@click.command("test")
@click.argument("filters", metavar="[NAME]...", nargs=-1)
@format_option("text", "json", "junit")
@global_options
@pass_settings
def command(settings: InvocationOptions, filters: tuple[str, ...]) -> ExitCode:
    """Run the tests of migrations, in the folder `tests` of the migrations.

    With NAME only those with this text in the name of the file or of the test.  Each test has a catalog of
    its own in a temporary folder; no environment is read or changed.  Starts Spark once.

    Exits with 3 if a test does not pass.
    """
    from icemigrate.commands.test import run_tests

    result = run_tests(settings.open_project(), filters, SparkStartNotice().before_start)
    settings.answer(result)
    return ExitCode.FINDINGS if result.failed else ExitCode.OK
