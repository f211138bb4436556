"""``icemigrate shell``.

Its prompt uses ``readline`` of Python's standard library, which is imported in 2 ms.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice, pass_settings
from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write_stream
from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.commands.shell import EntryReader, ShellEntry, SqlSession

_PROMPT, _CONTINUATION = "icemigrate> ", "       ...> "
_LEAVE = ("exit", "quit")
_WITHOUT_SHELL = ("shell", "completion")


@click.command("shell")
@click.option(
    "--keep-going",
    is_flag=True,
    help="Without a terminal: run the other commands after one that fails, and exit with the code of the "
    "first that failed.",
)
@global_options
@pass_settings
def command(settings: InvocationOptions, keep_going: bool) -> int:
    """Run commands and SQL statements in one session, with one Spark for all of them.

    A command is written without `icemigrate`, with the same options.  A statement of Spark SQL ends with `;`
    and may have several lines; its result is a table of at most 100 rows.  Spark starts when the first one
    needs it.  `exit` or Ctrl-D leaves, Ctrl-C stops only what runs.

    Every command reads the project again.  If Spark's settings changed, Spark starts again.  The global
    options of `shell` apply to all commands.

    Without a terminal, reads the commands from standard input and ends with the first exit code that is not
    0: `printf 'plan\\napply --auto-approve\\n' | icemigrate shell`.
    """
    from icemigrate.cli.group import COMMANDS
    from icemigrate.commands.shell import EntryReader, SqlSession, one_warm_spark

    reader, statements = EntryReader(COMMANDS), SqlSession()
    is_asked = sys.stdin.isatty()

    def on_restart() -> None:
        settings.show_progress("Spark's settings changed: Spark starts again.\n")

    with _global_options_for_all(settings), one_warm_spark(on_restart):
        if is_asked:
            return _prompt(settings, reader, statements)
        return _read_script(settings, reader, statements, keep_going=keep_going)


def _prompt(settings: InvocationOptions, reader: EntryReader, statements: SqlSession) -> int:
    """Ask for entries until the user leaves."""
    _complete_names()
    settings.show_progress("Commands of icemigrate, and SQL that ends with `;`. `exit` or Ctrl-D leaves.\n")
    while True:
        try:
            entry = reader.feed(input(_CONTINUATION if reader.is_open else _PROMPT))
        except EOFError:
            write_stream("\n")
            return ExitCode.OK
        except KeyboardInterrupt:
            write_stream("\n")
            reader.clear()
            continue
        if entry is None:
            continue
        if _is_end(entry):
            return ExitCode.OK
        code = _run(settings, entry, statements)
        if code == ExitCode.TERMINATED:
            return code
        if code != ExitCode.OK:
            text = settings.style(sys.stderr).dim(f"exit code {code}")
            write_stream(f"{text}\n", sys.stderr, is_rendered=True)


def _read_script(
    settings: InvocationOptions, reader: EntryReader, statements: SqlSession, *, keep_going: bool
) -> int:
    """Run the entries of standard input; returns the first exit code that is not 0."""
    failed = 0
    for line in sys.stdin:
        entry = reader.feed(line)
        if entry is None:
            continue
        if _is_end(entry):
            return failed
        code = _run(settings, entry, statements)
        if code == ExitCode.TERMINATED or (code != ExitCode.OK and not keep_going):
            settings.show_step(f"`{entry.text}` ended with exit code {code}")
            return code
        failed = failed or code
    reader.require_finished()
    return failed


def _is_end(entry: ShellEntry) -> bool:
    return entry.text in _LEAVE


def _run(settings: InvocationOptions, entry: ShellEntry, statements: SqlSession) -> int:
    """Run one entry as a process of its own would; returns its exit code."""
    from icemigrate.cli.exit import run
    from icemigrate.cli.group import icemigrate
    from icemigrate.commands.shell import discard_broken_spark

    if "\0" in entry.text:
        # No path of the system and no argument of a process can contain it.
        write_stream("error: the entry cannot be read: it contains a NUL character\n", sys.stderr)
        return ExitCode.USAGE
    if entry.is_sql:
        code = run(_sql_command(statements), ["--", entry.text])
    else:
        try:
            words = shlex.split(entry.text)
        except ValueError as error:
            write_stream(f"error: the command cannot be read: {error}\n", sys.stderr)
            return ExitCode.USAGE
        if words[0] == "icemigrate":
            words = words[1:]
        if words[:1] == ["shell"]:
            write_stream("error: this is a shell of icemigrate already: `exit` leaves it\n", sys.stderr)
            return ExitCode.USAGE
        code = run(icemigrate, ["--help"] if words in ([], ["help"]) else words)
    if discard_broken_spark(code):
        settings.show_progress("Spark was stopped; it starts again when it is needed.\n")
    return int(code)


def _sql_command(statements: SqlSession) -> click.Command:
    """A command that runs one statement, so that its errors are shown as those of any other command."""

    @click.command("sql")
    @click.argument("statement")
    @global_options
    @pass_settings
    def sql(settings: InvocationOptions, statement: str) -> None:
        began = time.monotonic()
        start = SparkStartNotice().before_start
        table = statements.run(settings.open_project(), settings.environment, statement, start)
        if table:
            write_stream(table.rstrip("\n") + "\n")
        else:
            settings.show_progress(f"Done in {time.monotonic() - began:.1f} s.\n")

    return sql


@contextmanager
def _global_options_for_all(settings: InvocationOptions) -> Iterator[None]:
    """A block in which the global options are the defaults of every command, as their variables set them."""
    values = {
        "ICEMIGRATE_PROJECT": None if settings.project is None else str(settings.project.absolute()),
        "ICEMIGRATE_ENV": settings.environment,
        "ICEMIGRATE_QUIET": "1" if settings.quiet else None,
        "ICEMIGRATE_VERBOSE": "1" if settings.verbose else None,
        "ICEMIGRATE_NO_COLOR": None if settings.color else "1",
    }
    before = {name: os.environ.get(name) for name in values}
    os.environ.update({name: value for name, value in values.items() if value is not None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _complete_names() -> None:
    """Let the Tab key complete names of commands and of their options, where Python has ``readline``."""
    with suppress(ImportError):
        import readline

        readline.set_completer_delims(" \t")
        readline.set_completer(_completer(lambda: readline.get_line_buffer()[: readline.get_begidx()]))
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")


def _completer(text_before: Callable[[], str]) -> Callable[[str, int], str | None]:
    """A completer of ``readline``.

    :param text_before: gives the line up to the word that is completed.
    """

    def complete(word: str, number: int) -> str | None:
        names = [name for name in _names_after(text_before().split()) if name.startswith(word)]
        return f"{names[number]} " if number < len(names) else None

    return complete


def _names_after(words: list[str]) -> list[str]:
    """What may follow these words: the names of commands, or the options of the command."""
    from icemigrate.cli.group import COMMANDS, command_of

    if not words:
        return [*(name for name in COMMANDS if name not in _WITHOUT_SHELL), "exit", "help"]
    if words[0] not in COMMANDS:
        return []
    options = (param for param in command_of(words[0]).params if isinstance(param, click.Option))
    return sorted(name for option in options for name in (*option.opts, *option.secondary_opts))
