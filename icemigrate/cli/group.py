"""The program itself: its global options, and its commands, each imported only when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from icemigrate.cli.options import add_variables, global_options, note_variables, refuse_repeated
from icemigrate.cli.streams import write_stream
from icemigrate.errors import IcemigrateError
from icemigrate.versions import ICEMIGRATE

# Name and summary, in the order of a first use; the module of the same name has the `command`.
COMMANDS: dict[str, str] = {
    "init": "Create a project: project file, migrations folder, workflow for pull requests.",
    "new": "Write the next numbered migration file.",
    "diff": "Write the migration that leads to a desired state.",
    "import": "Write a migration that adopts existing tables.",
    "adopt-parquet": "Take existing Parquet files into a table as they are, or out of it again.",
    "check": "Check all migration files and every step between versions, without a catalog.",
    "test": "Run the tests of migrations, on catalogs in a temporary folder.",
    "lock": "Write the lock file from the current migration files.",
    "rules": "List the rules of `check` and their levels.",
    "explain": "Explain an identifier such as `IM104` or `no-promotion`, and what to do.",
    "plan": "Show what the pending migrations would change.",
    "apply": "Apply the pending migrations: plan, ask, run, verify, record.",
    "rollback": "Roll back migrations: plan, ask, run, verify, record.",
    "reset": "Move all tables of a disposable environment to the trash, and empty the history.",
    "revert": "Write a migration that undoes another one.",
    "repair": "Accept edited files that still declare the same; --adopt records a recreated table, "
    "--abandon gives a version up.",
    "rebase": "Renumber migration files that are out of order.",
    "squash": "Replace all files up to a version with one file.",
    "drift": "Show changes by other clients; `--accept` writes the migration that declares them.",
    "maintain": "Apply retention: trash, snapshots, rows, old schemas, old views, orphan files.",
    "unlock": "Release the lock of a process that hangs.",
    "status": "Show the state of each migration and each table.",
    "history": "Show the history: who did what, when, and how long it took.",
    "show": "Print the declared tables as YAML that is a valid migration file.",
    "generate": "Generate rows of test data for a table: a Parquet file, or rows of the table.",
    "table": "Read and change the rows, columns and snapshots of one table.",
    "ingest": "Drain a write-ahead log of OpenTelemetry data into the tables of its tenants, with Spark.",
    "shell": "Run commands and SQL statements in one session, with one Spark for all of them.",
    "doctor": "Check the setup: Java, Spark, jars, catalog, storage, permissions.",
    "comment": "Create or update one comment of a pull or merge request.",
    "completion": "Print a completion script for a shell.",
}


TABLE_COMMANDS: dict[str, str] = {
    "create": "Create a table that no migration declares.",
    "insert": "Insert the rows of files into a table, in one snapshot.",
    "query": "Show rows of a table, as they are or as they were.",
    "sql": "Run a SELECT on tables of the catalog, as they are or as they were.",
    "update": "Set columns of the rows of a table that a condition selects.",
    "delete": "Delete the rows of a table that a condition selects.",
    "upsert": "Update the rows of a table that have the keys of a file's rows, and insert the others.",
    "add-column": "Add a column to a table, without a migration file.",
    "rename-column": "Rename a column of a table, without a migration file.",
    "drop-column": "Drop a column of a table, without a migration file.",
    "snapshots": "List the snapshots of a table, with its branches and tags.",
    "describe": "Describe a table: schema with ids, partitioning, sizes, properties, health.",
    "files": "List the data files and delete files of a table.",
    "partitions": "List the partitions of a table, with files, rows and sizes.",
    "manifests": "List the manifests of a table.",
    "compact": "Write the small data files of a table as fewer large ones, with Spark.",
    "compare": "Compare two snapshots of a table: schema, files, rows, and counts per column.",
    "history": "Show the table history: every schema, partition spec, snapshot, branch and tag.",
    "rollback": "Roll back a table to a snapshot: set its main branch to an earlier one.",
    "expire": "Expire old snapshots of a table, and delete the files that only they need.",
}
"""The commands of `table`, as in :data:`COMMANDS`; the module of `query` is `table_query`."""
SUBCOMMANDS: dict[str, str] = {
    "ingest status": "Show what waits in a write-ahead log, and what is drained, by tenant and kind.",
    "ingest propose": "Write a migration with columns for attributes that no column has.",
}
"""Commands behind one that also does something by itself, which then takes no argument of that name."""
LEAF_COMMANDS: dict[str, str] = {
    **{name: text for name, text in COMMANDS.items() if name != "table"},
    **{f"table {name}": text for name, text in TABLE_COMMANDS.items()},
    **SUBCOMMANDS,
}
"""All commands that do something, under the words that a user types."""


_GROUPS = {"table": "table_commands"}
"""The modules of groups."""


def command_of(name: str) -> click.Command:
    """The command of a name of :data:`COMMANDS` or :data:`LEAF_COMMANDS`."""
    module = name.replace(" ", "_").replace("-", "_")
    if iskeyword(module):  # no module can be called `import`
        module += "_"
    command = import_module(f"icemigrate.cli.{_GROUPS.get(module, module)}").command
    assert isinstance(command, click.Command)
    return command if isinstance(command, LazyGroup) else add_variables(name, command)


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is called.

    :param members: name and summary of each command.
    :param prefix: what precedes these names in :func:`command_of`.
    """

    def __init__(
        self, *args: Any, members: Mapping[str, str] = COMMANDS, prefix: str = "", **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._members, self._prefix = members, prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands in the order of a first use."""
        return list(self._members)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, or ``None``."""
        if cmd_name not in self._members:
            return None
        return command_of(self._prefix + cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in Click, with a hint for a similar name; an option of the command that takes one value may be
        given once.
        """
        if args and args[0] not in self._members and not args[0].startswith("-"):
            from icemigrate.cli.other_tool_commands import command_hint

            # Words of other tools name commands for migrations, which a group of commands has none of.
            hint = command_hint(args[0], self._members, TABLE_COMMANDS, knows_other_tools=not self._prefix)
            ctx.fail(f"there is no command `{self._prefix}{args[0]}`" + (f": {hint}" if hint else ""))
        name, command, rest = super().resolve_command(ctx, args)
        if rest and (longer := f"{self._prefix}{name} {rest[0]}") in SUBCOMMANDS:
            name, command, rest = longer, command_of(longer), rest[1:]
        if command is not None and not ctx.resilient_parsing and not isinstance(command, LazyGroup):
            inner = click.Context(command, ctx, info_name=name, **command.context_settings)
            note_variables(command, inner, refuse_repeated(command, inner, rest))
        return name, command, rest

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As in Click; an option that takes one value may be given once."""
        refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """As in Click, which would end silently when a connection breaks.

        Click takes that for a closed pipe, which :func:`~icemigrate.cli.streams.write_stream` handles.

        :raises IcemigrateError: a connection broke.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise IcemigrateError("the connection was lost: run the command again") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands of the table, so that `--help` imports none of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._members.items()))


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        write_stream(f"icemigrate {ICEMIGRATE}\n")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    name="icemigrate",
    context_settings={"max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
@global_options
def icemigrate(**_options: Any) -> None:
    """Versioned, reviewed and reversible migrations for Apache Iceberg tables."""
