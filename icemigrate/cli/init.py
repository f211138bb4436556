"""``icemigrate init``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.option_types import OneOf
from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write_stream


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path), default=Path(), required=False)
@click.option(
    "--ci",
    type=OneOf(["github", "gitlab", "none"]),
    help="The code host whose CI checks changes (default: that of the Git remote `origin`; "
    "`github` without a remote).",
)
@click.option("--empty", is_flag=True, help="Write no example migration.")
@global_options
@pass_settings
def command(settings: InvocationOptions, folder: Path, ci: str | None, empty: bool) -> None:
    """Create a project in FOLDER (default: the current folder): project file, migrations, CI workflow.

    Existing files are not changed.
    """
    from icemigrate.commands.init import init, unread_ci_file

    files = init(folder, ci, is_empty=empty)
    for path, is_new in () if settings.quiet else files:
        write_stream(f"{'wrote' if is_new else 'kept '} {path}\n")
    if unread := unread_ci_file(folder):
        note = "code hosts read it only at the top of the repository: move it there, and adapt its paths"
        write_stream(f"note: {unread}: {note}\n", sys.stderr)
    first = 'run `icemigrate new "what it does"`' if empty else "edit the migration"
    settings.show_progress(f"Next: {first}, then run `icemigrate check --fix`.\n")
