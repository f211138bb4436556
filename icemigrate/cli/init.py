"""``icemigrate init``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path), default=Path(), required=False)
@global_options
def command(folder: Path) -> None:
    """Begin a project in FOLDER (without it, here): project file, migrations, workflow for pull requests.

    Files that are there already are left as they are.
    """
    from icemigrate.app.starting import init

    for path, is_new in init(folder):
        write(f"{'wrote' if is_new else 'kept '} {path}\n")
    write("Next: say in the migration what you want, then `icemigrate check --fix`.\n", sys.stderr)
