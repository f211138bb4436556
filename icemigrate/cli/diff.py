"""``icemigrate diff``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options, print_file_option
from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.desired_state.rename_hints import RenameQuestion


@click.command("diff")
@click.argument("desired", metavar="[FILE|FOLDER]", required=False, type=click.Path(path_type=Path))
@click.option("--from-env", metavar="NAME", help="Compare with the catalog of this environment.")
@click.option(
    "--table",
    "tables",
    metavar="NAME",
    multiple=True,
    help="Compare only this table; the table that a schema describes.",
)
@click.option(
    "--rename",
    "renames",
    metavar="OLD=NEW",
    multiple=True,
    help="Rename a column (`ns.table.old=new`) or a table (`ns.old=ns.new`).",
)
@click.option("--no-renames", is_flag=True, help="Treat what is new as new, but for `--rename`.")
@click.option("--include-drops", is_flag=True, help="Drop what the desired state does not have.")
@click.option(
    "--description", metavar="TEXT", help="The migration's description, from which the file gets its name."
)
@print_file_option
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 if there is something to declare.")
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    desired: Path | None,
    from_env: str | None,
    tables: tuple[str, ...],
    renames: tuple[str, ...],
    no_renames: bool,
    include_drops: bool,
    description: str | None,
    dry_run: bool,
    detailed_exitcode: bool,
) -> ExitCode:
    """Write the migration that leads to a desired state.

    The desired state is a file or a folder of tables as `show` prints them, a Parquet or Arrow file, a schema
    of Spark in JSON, a properties file of dbt, a data contract (ODCS), or the catalog of an environment.  It
    is compared with the state that the migration files declare.

    A rename is asked for on a terminal; otherwise an unclear one is an error.  Drops are listed, and written
    with `--include-drops`.
    """
    from icemigrate.commands.diff import DiffOptions, diff

    options = DiffOptions(tables, renames, no_renames, include_drops, description, dry_run)
    can_ask = sys.stdin.isatty() and sys.stderr.isatty()
    result = diff(
        settings.open_project(may_be_new=True), desired, from_env, options, _ask if can_ask else None
    )
    settings.answer(result)
    return ExitCode.CHANGES if detailed_exitcode and not result.is_empty else ExitCode.OK


def _ask(question: RenameQuestion) -> int | None:
    """The candidate that the user names; ``None`` for none of them."""
    texts = question.candidate_texts
    if len(texts) == 1:
        agreed = click.confirm(f"Is {question.subject} the renamed {texts[0]}?", default=False, err=True)
        return 0 if agreed else None
    click.echo(f"{question.subject} is new. Which one is renamed?", err=True)
    for number, text in enumerate(texts, start=1):
        click.echo(f"  {number}  {text}", err=True)
    chosen = click.prompt("Number, or 0 for none", type=click.IntRange(0, len(texts)), default=0, err=True)
    return None if chosen == 0 else chosen - 1
