"""``icemigrate check``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, global_options, pass_settings
from icemigrate.cli.outputs import format_option
from icemigrate.errors import ExitCode


@click.command("check")
@format_option("text", "json", "markdown", "github", "gitlab", "junit", "sarif")
@global_options
@pass_settings
def command(settings: Settings) -> int:
    """Check every file and every step between versions, without a catalog.

    Ends with 0 when nothing stands in the way, with 3 when there are mistakes or a consent is missing.
    """
    from icemigrate.app.checking import check

    result = check(settings.open_project())
    settings.answer(result)
    return ExitCode.OK if result.ok else ExitCode.FINDINGS
