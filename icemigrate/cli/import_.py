"""``icemigrate import``."""

from __future__ import annotations

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options, print_file_option


@click.command("import")
@click.argument("names", metavar="[NAMESPACE|TABLE]...", nargs=-1)
@click.option("--exclude", metavar="NAME", multiple=True, help="Exclude this table or namespace.")
@click.option(
    "--description", metavar="TEXT", help="The migration's description, from which the file gets its name."
)
@print_file_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    names: tuple[str, ...],
    exclude: tuple[str, ...],
    description: str | None,
    dry_run: bool,
) -> None:
    """Write a migration that adopts existing tables.

    Without a name, adopts all tables of the catalog that no migration declares.  In the same catalog the
    migration changes nothing; `apply --baseline` records it.  Does not start a JVM.
    """
    from icemigrate.commands.import_tables import import_tables

    settings.answer(
        import_tables(
            settings.open_project(may_be_new=True),
            settings.environment,
            names,
            exclude=exclude,
            description=description,
            dry_run=dry_run,
        )
    )
