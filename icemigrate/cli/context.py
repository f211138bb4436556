"""What every command knows of its call: the project, the environment, and where its answer goes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from icemigrate.cli.outputs import Output, text_of, write_files
from icemigrate.cli.streams import write

if TYPE_CHECKING:
    from icemigrate.project import Project
    from icemigrate.render.style import Style


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
                write(text, is_rendered=True)


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
