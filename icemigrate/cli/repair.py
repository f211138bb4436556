"""``icemigrate repair``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from icemigrate.cli.invocation import InvocationOptions, pass_settings
from icemigrate.cli.options import format_option, global_options, lock_timeout_option
from icemigrate.errors import UsageError

if TYPE_CHECKING:
    from icemigrate.results.command_results import RepairResult


@click.command("repair")
@click.option(
    "--adopt",
    "tables",
    metavar="TABLE",
    multiple=True,
    help="Record this table again, which another client dropped and created under the same name. Repeatable.",
)
@click.option(
    "--abandon",
    "abandoned",
    metavar="VERSION",
    multiple=True,
    help="Give up this rolled-back version: no `--redo` applies it again. Repeatable.",
)
@lock_timeout_option
@format_option("text", "json")
@global_options
@pass_settings
def command(
    settings: InvocationOptions,
    tables: tuple[str, ...],
    abandoned: tuple[str, ...],
    lock_timeout_s: float | None,
) -> None:
    """Accept edited files of applied migrations that still declare the same.

    Changes no table; adds a row to the history for each file.  If a file declares something else, shows the
    differences, records nothing and exits with 3.

    With --adopt, records only the tables that have the names of recorded ones which were dropped; `drift`
    then shows the differences.

    With --abandon, records only that rolled-back versions are given up in this environment.  Their files may
    be missing.
    """
    from icemigrate.commands.abandoned_versions import abandon_versions
    from icemigrate.commands.recreated_tables import adopt_recreated
    from icemigrate.commands.repair import repair

    if tables and abandoned:
        raise UsageError("`--adopt` and `--abandon` cannot be combined", "run the command once for each")
    act: Callable[..., RepairResult] = repair
    if tables:
        act = partial(adopt_recreated, tables=tables)
    elif abandoned:
        act = partial(abandon_versions, versions=abandoned)
    result = act(
        settings.open_project(),
        settings.environment,
        on_start=lambda: settings.show_progress("Starting Spark to write to the history …\n"),
        lock_timeout_s=lock_timeout_s,
    )
    settings.answer(result)
