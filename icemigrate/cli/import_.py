"""``icemigrate import``."""

from __future__ import annotations

import click

from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options


@click.command("import")
@click.argument("names", metavar="[NAMESPACE|TABLE]...", nargs=-1)
@click.option("--exclude", metavar="NAME", multiple=True, help="Leave out this table or namespace.")
@click.option("--description", metavar="TEXT", help="The migration's description, which names its file too.")
@click.option("--dry-run", is_flag=True, help="Print the file instead of writing it.")
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: Settings,
    names: tuple[str, ...],
    exclude: tuple[str, ...],
    description: str | None,
    dry_run: bool,
) -> None:
    """Write the migration that takes in tables which exist already.

    Without a name, all tables of the catalog that no migration declares.  Planned against the same catalog it
    changes nothing; `apply --baseline` records it without touching a table.  Starts no JVM.
    """
    from icemigrate.app.importing import import_tables

    settings.answer(
        import_tables(
            settings.open_project(),
            settings.environment,
            names,
            exclude=exclude,
            description=description,
            dry_run=dry_run,
        )
    )
