"""The program itself: its global options, and its commands, each imported only when it is called."""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from icemigrate.cli.options import global_options, refuse_repeated
from icemigrate.cli.streams import write
from icemigrate.errors import IcemigrateError
from icemigrate.versions import ICEMIGRATE

# Name and what it does, in the order of a first use; the module of the same name here has it as `command`.
COMMANDS: dict[str, str] = {
    "init": "Begin a project: project file, migrations folder, workflow for pull requests.",
    "new": "Write the next numbered migration file.",
    "import": "Write the migration that takes in tables which exist already.",
    "check": "Check every file and every step between versions, without a catalog.",
    "rules": "List the rules of `check` and how much each weighs.",
    "explain": "Say what an identifier such as `IM104` or `no-promotion` means, and what to do.",
    "plan": "Show what the pending migrations would do.",
    "apply": "Do it: plan, ask, run, verify, record.",
    "rollback": "Take migrations back: plan, ask, do, verify, record.",
    "revert": "Write the migration that undoes another one.",
    "repair": "Accept applied files that were edited and declare the same.",
    "rebase": "Give files that came late the next numbers.",
    "squash": "Write one file for all files up to a version.",
    "drift": "Show what others did to the tables; --accept writes the migration that declares it.",
    "maintain": "Carry out retention: trash, snapshots, rows, orphan files.",
    "unlock": "Take the lock away from a process that hangs.",
    "status": "Show where each migration and each table stands.",
    "history": "Show all that happened: who did what, when, and how long it took.",
    "show": "Print the declared tables as YAML that is itself a valid declaration.",
    "doctor": "Say what works here: Java, Spark, jars, catalog, storage, rights.",
    "comment": "Put markdown into one comment of a pull or merge request, updated in place.",
    "completion": "Print the completion script for a shell.",
}


def command_of(name: str) -> click.Command:
    """The command of a name of :data:`COMMANDS`."""
    # No module can be called `import`.
    module = f"{name}_" if iskeyword(name) else name
    command = import_module(f"icemigrate.cli.{module}").command
    assert isinstance(command, click.Command)
    return command


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, or ``None``."""
        if cmd_name not in COMMANDS:
            return None
        return command_of(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As Click does it, with a hint where the name is nearly right.

        An option of the command that takes one value may be given once.
        """
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from icemigrate.cli.elsewhere import command_hint

            hint = command_hint(args[0], COMMANDS)
            ctx.fail(f"there is no command `{args[0]}`" + (f": {hint}" if hint else ""))
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            inner = click.Context(command, ctx, info_name=name, **command.context_settings)
            refuse_repeated(command, inner, rest)
        return name, command, rest

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As Click does it; an option that takes one value may be given once."""
        refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """As Click does it, which would end without a word where a connection breaks off.

        It takes that for a reader who has seen enough, of whom :func:`~icemigrate.cli.context.write` knows.

        :raises IcemigrateError: one did.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise IcemigrateError("a connection broke off: run the command again") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands as the table has them, so that `--help` imports none of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        write(f"icemigrate {ICEMIGRATE}\n")
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
