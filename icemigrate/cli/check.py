"""``icemigrate check``."""

from __future__ import annotations

import os

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.errors import ExitCode


@click.command("check")
@format_option("text", "json", "markdown", "github", "gitlab", "junit", "sarif")
@click.option(
    "--git-base",
    metavar="REF",
    help="Tell only what is new or changed since this branch or commit; `none` compares with nothing. "
    "Without it the target of the pull or merge request, in GitHub Actions and GitLab CI; outside of CI, "
    "the text leaves warnings and notes out whose files are on the main branch already.",
)
@click.option("--fix", is_flag=True, help="Write the lock file as the files are now.")
@global_options
@pass_settings
def command(settings: Settings, git_base: str | None, fix: bool) -> int:
    """Check every file and every step between versions, without a catalog.

    Ends with 0 when nothing stands in the way, with 3 when there are mistakes or a consent is missing.
    """
    from icemigrate.app.checking import check
    from icemigrate.app.git_base import chosen_base

    project = settings.open_project()
    base = chosen_base(git_base, os.environ, project.root)
    # What programs read holds all of it: only the text says what it leaves out.
    is_for_a_person = all(output.format == "text" for output in settings.outputs) and not os.environ.get("CI")
    leaves_older = git_base is None and base is None and is_for_a_person
    result = check(project, base, fix=fix, leaves_older=leaves_older)
    settings.answer(result)
    return ExitCode.OK if result.ok else ExitCode.FINDINGS
