"""``icemigrate check``."""

from __future__ import annotations

import os

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.errors import ExitCode


@click.command("check")
@format_option("text", "json", "markdown", "github", "gitlab", "junit", "sarif")
@click.option(
    "--git-base",
    metavar="REF",
    envvar="ICEMIGRATE_GIT_BASE",
    help="Show only what is new or changed since this branch or commit; `none` turns the "
    "comparison off. Default: in GitHub Actions and GitLab CI, the target of the pull or "
    "merge request; elsewhere, new files are compared with the versions of the main branch, and "
    "text output omits warnings and notes about files that are already there.",
)
@click.option(
    "--fix",
    is_flag=True,
    help="Correct misspelled words and terms of other tools in migration files, and write the lock file.",
)
@global_options
@pass_settings
def command(settings: InvocationOptions, git_base: str | None, fix: bool) -> int:
    """Check all migration files and every step between versions, without a catalog.

    Exits with 0 if there are no errors, with 3 if there are errors or a consent is missing.
    """
    from icemigrate.commands.check import check
    from icemigrate.commands.comparison_base import chosen_base

    project = settings.open_project()
    base = chosen_base(git_base, os.environ, project.root)
    # What programs read holds all of it: only the text says what it leaves out.
    is_for_a_person = all(output.format == "text" for output in settings.outputs) and not os.environ.get("CI")
    leaves_older = git_base is None and base is None and is_for_a_person
    compares_versions = git_base is None and base is None
    result = check(project, base, fix=fix, leaves_older=leaves_older, compares_versions=compares_versions)
    settings.answer(result)
    return ExitCode.OK if result.ok else ExitCode.FINDINGS
