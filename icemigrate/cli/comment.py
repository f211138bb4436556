"""``icemigrate comment``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write_stream


@click.command("comment")
@click.argument("files", metavar="FILE...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--key",
    default="check",
    show_default=True,
    metavar="NAME",
    help="Name of the comment: a pull request has one comment for each name.",
)
@global_options
def command(files: tuple[Path, ...], key: str) -> None:
    """Create or update one comment of a pull or merge request, in GitHub Actions and GitLab CI.

    An invisible marker identifies the comment, so later runs update it. The token comes from `GITHUB_TOKEN`
    (the job needs `permissions: {pull-requests: write}`) or from `GITLAB_TOKEN`.
    """
    from icemigrate.commands.comment import comment

    write_stream(f"{comment(files, key, os.environ)}\n")
