"""What every command gets from the command line, and how it writes its answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from icemigrate.cli.outputs import Output, text_of, write_files
from icemigrate.errors import IcemigrateError

if TYPE_CHECKING:
    from icemigrate.project import Project
    from icemigrate.render.style import Style

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(slots=True)
class Settings:
    """The global options; a command's own ones win over those before its name.

    :param outputs: what was asked for, in which format.
    """

    project: Path | None = None
    environment: str | None = None
    color: bool = True
    outputs: tuple[Output, ...] = (Output("text"),)

    def open_project(self) -> Project:
        """The project that the options name, or the one that the current folder belongs to."""
        from icemigrate.app.opening import open_project

        return open_project(self.project)

    def style(self, stream: TextIO) -> Style:
        """Colour for a stream, where it has it and nobody objects."""
        from icemigrate.render.style import style_for

        return style_for(stream, self.color)

    @property
    def format(self) -> str | None:
        """What standard output holds; ``None`` where all goes to files."""
        return next((output.format for output in self.outputs if output.file is None), None)

    def answer(self, result: object) -> None:
        """Write a result to the outputs that were asked for.

        :raises IcemigrateError: a file cannot be written; standard output holds nothing then.
        """
        texts = [(output, text_of(result, output, self.style(sys.stdout))) for output in self.outputs]
        write_files(texts)
        for output, text in texts:
            if output.file is None:
                write(text)


pass_settings = click.make_pass_decorator(Settings, ensure=True)


@dataclass(slots=True)
class SparkTold:
    """Says once that Spark is started: a second session of it takes no time.

    :param first: done before Spark is started for a plan alone; may raise, so that it is not.
    """

    first: Callable[[], None] = lambda: None
    is_told: bool = False

    def tell(self, text: str) -> None:
        """Say it in these words."""
        if not self.is_told:
            write(text, sys.stderr)
        self.is_told = True

    def tell_of_questions(self) -> None:
        """Say it, and that a plan needs it.

        :raises IcemigrateError: of ``first``.
        """
        self.first()
        self.tell("Starting Spark, to ask the tables' manifests …\n")

    def tell_of_start(self) -> None:
        """Say it, and no more: what has been planned is done."""
        self.tell("Starting Spark …\n")


def write(text: str, stream: TextIO | None = None) -> None:
    """Write to standard output (or to ``stream``).

    A reader that closed the pipe (``| head``) has seen what it wanted: the command ends as it would have.

    :raises IcemigrateError: standard output takes nothing, as on a full disk.  What standard error does not
        take is lost: there is no place left to say so.
    """
    stream = stream or sys.stdout
    try:
        stream.write(_encodable(text, stream))
        stream.flush()
    except OSError as error:
        # What is still buffered would fail again while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError) and stream is sys.stdout:
            reason = error.strerror or str(error)
            raise IcemigrateError(f"standard output cannot be written to: {reason}") from error


def _encodable(text: str, stream: TextIO) -> str:
    """The text with what the stream's encoding lacks written as JSON's strings have it, ``\\u8868``."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        import json

        return "".join(c if _has(encoding, c) else json.dumps(c)[1:-1] for c in text)
    return text


def _has(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value is not None:
            setattr(ctx.ensure_object(Settings), name, value)

    return callback


def _help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        write(f"{ctx.get_help()}\n")
        ctx.exit()


# Click's own ends with 1 where the reader of a pipe has seen enough.
help_option = click.option(
    "-h",
    "--help",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_help,
    help="Show this message and exit.",
)


def global_options(command: _Command) -> _Command:
    """``--project``, ``--env``, ``--no-color`` and ``--help``, before the command's name or behind it."""
    for option in (
        help_option,
        click.option(
            "--no-color",
            "color",
            flag_value=False,
            default=None,
            type=bool,
            is_eager=True,
            expose_value=False,
            callback=_remember("color"),
            help="Write without colour.",
        ),
        click.option(
            "--env",
            metavar="NAME",
            envvar="ICEMIGRATE_ENV",
            expose_value=False,
            callback=_remember("environment"),
            help="The environment; without it the project's default.",
        ),
        click.option(
            "--project",
            metavar="FILE",
            type=click.Path(path_type=Path),
            envvar="ICEMIGRATE_PROJECT",
            expose_value=False,
            callback=_remember("project"),
            help="The project file or its folder; without it `icemigrate.yaml` here.",
        ),
    ):
        command = option(command)
    return command
