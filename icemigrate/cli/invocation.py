"""The context of a command's call: the project, the environment, and the outputs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from icemigrate.cli.outputs import OutputTarget, require_writable_files, text_of, write_files
from icemigrate.cli.streams import write_stream

if TYPE_CHECKING:
    from icemigrate.project import Project
    from icemigrate.render.log_lines import LineEvent
    from icemigrate.render.terminal_style import TerminalStyle


@dataclass(slots=True)
class InvocationOptions:
    """The global options, which are given before the name of a command or after it.

    :param outputs: the requested outputs, with their formats.
    :param log_format: of what goes to standard error: ``text``, or ``json`` for one document on each line.
    :param began: when the user started the command, on the monotonic clock, without the time of questions.
    """

    project: Path | None = None
    environment: str | None = None
    color: bool = True
    verbose: bool = False
    quiet: bool = False
    outputs: tuple[OutputTarget, ...] = (OutputTarget("text"),)
    log_format: str = "text"
    began: float = field(default_factory=time.monotonic)

    def open_project(self, *, may_be_new: bool = False) -> Project:
        """The project of the options, or the one of the current folder.

        :param may_be_new: whether the folder may belong to no project yet.
        :raises IcemigrateError: it belongs to none.
        """
        from icemigrate.project import local_state, open_project, require_project
        from icemigrate.system.reserved_files import reserve_project_files

        project = open_project(self.project)
        if not may_be_new:
            require_project(project)
        reserve_project_files(project.migrations_dir, local_state(project))
        require_writable_files(self.outputs)
        return project

    def style(self, stream: TextIO) -> TerminalStyle:
        """Colour for a stream that supports it, unless it is turned off; details with ``--verbose``."""
        from icemigrate.render.terminal_style import style_for

        return style_for(stream, self.color, self.verbose)

    @property
    def format(self) -> str | None:
        """The format of standard output; ``None`` where all output goes to files."""
        return next((output.format for output in self.outputs if output.file is None), None)

    def show_progress(self, text: str) -> None:
        """Write a text to standard error, unless the user wants no progress."""
        if self.quiet:
            return
        if self.log_format == "text":
            write_stream(text, sys.stderr)
            return
        from icemigrate.render.log_lines import LineEvent

        for line in filter(None, map(str.strip, text.splitlines())):
            self.log(LineEvent("info", "progress", {"message": line}))

    def log(self, event: LineEvent) -> None:
        """Write a structured line to standard error; with ``--quiet`` only warnings and errors."""
        from icemigrate.render.log_lines import log_line

        if not self.quiet or event.level != "info":
            write_stream(log_line(event, time.time()), sys.stderr, is_rendered=True)

    def show_step(self, text: str) -> None:
        """Write one line to standard error, as :meth:`show_progress`, whatever its names contain."""
        from icemigrate.render.display import one_line

        self.show_progress(f"{one_line(text)}\n")

    def answer(self, result: object) -> None:
        """Write a result to the requested outputs.

        :raises IcemigrateError: a file cannot be written; standard output is empty then.
        """
        style, timed = self.style(sys.stdout), self._with_wall_time(result)
        texts = [
            (output, text_of(timed if output.format == "text" else result, output, style))
            for output in self.outputs
        ]
        write_files(texts)
        for output, text in texts:
            if output.file is None:
                write_stream(text, is_rendered=True)

    def _with_wall_time(self, result: object) -> object:
        """A result whose duration is the one that the user saw; JSON has that of the work."""
        from icemigrate.frozen import Frozen, replace

        if not isinstance(result, Frozen) or not hasattr(result, "elapsed_ms"):
            return result
        return replace(result, elapsed_ms=round((time.monotonic() - self.began) * 1000))


pass_settings = click.make_pass_decorator(InvocationOptions, ensure=True)


@dataclass(slots=True)
class SparkStartNotice:
    """Announces the start of Spark once: a second session of it takes no time.

    :param first: called before Spark is started for a plan; may raise to prevent that.
    """

    first: Callable[[], None] = lambda: None
    is_written: bool = False

    def write_once(self, text: str) -> None:
        """Write the text, unless one was written, or the user wants no progress."""
        context = click.get_current_context(silent=True)
        options = None if context is None else context.find_object(InvocationOptions)
        if not self.is_written:
            (options or InvocationOptions()).show_progress(text)
        self.is_written = True

    def before_questions(self) -> None:
        """Announce that a plan needs Spark.

        :raises IcemigrateError: of ``first``.
        """
        self.first()
        self.write_once("Starting Spark to read table manifests …\n")

    def before_start(self) -> None:
        """Announce the start of Spark."""
        self.write_once("Starting Spark …\n")
