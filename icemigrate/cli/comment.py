"""``icemigrate comment``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write


@click.command("comment")
@click.argument("files", metavar="FILE...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--key",
    default="check",
    show_default=True,
    metavar="NAME",
    help="Which comment: a pull request has one for each name.",
)
@global_options
def command(files: tuple[Path, ...], key: str) -> None:
    """Put markdown into one comment of a pull or merge request, in GitHub Actions and GitLab CI.

    The comment is found again by a mark that nobody sees, and written anew. The token is taken from
    `GITHUB_TOKEN`, where the job needs `permissions: {pull-requests: write}`, or from `GITLAB_TOKEN`.
    """
    from icemigrate.app.commenting import comment

    write(f"{comment(files, key, os.environ)}\n")
