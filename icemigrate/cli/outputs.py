"""The outputs of a command, several at once: ``NAME`` and ``NAME=FILE`` of ``--format``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from icemigrate.cli.streams import write_stream
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from icemigrate.render.terminal_style import TerminalStyle

    _ParamType: TypeAlias = click.ParamType[Any]
else:
    # Older releases of Click have no parameter here.
    _ParamType = click.ParamType

_ROOT_VARIABLES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Where GitHub Actions and GitLab CI put the repository."""


class OutputTarget(Frozen):
    """One of the requested outputs.

    :param format: its name in :data:`icemigrate.render.formats.OUTPUT_FORMATS`.
    :param file: ``None`` for standard output.
    """

    format: str
    file: Path | None = None


class OutputType(_ParamType):
    """``NAME`` or ``NAME=FILE`` on the command line."""

    name = "format"

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """As help shows it."""
        return f"[{'|'.join(self.names)}][=FILE]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> OutputTarget:
        """One output, or wrong usage."""
        if isinstance(value, OutputTarget):
            return value
        name, equals, file = str(value).partition("=")
        if name not in self.names:
            near = did_you_mean(name, self.names)
            known = ", ".join(f"`{known}`" for known in self.names)
            self.fail(f"there is no format `{name}`: {near or f'one of {known}'}", param, ctx)
        if equals and not file:
            self.fail(f"`{value}` names no file", param, ctx)
        return OutputTarget(name, Path(file) if file else None)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the name of a format."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


def text_of(result: object, output: OutputTarget, style: TerminalStyle) -> str:
    """A result as an output has it; a file has no colour."""
    from icemigrate.render.formats import find_output_format, render
    from icemigrate.render.terminal_style import TerminalStyle

    if find_output_format(output.format).for_repository:
        from icemigrate.render.finding_locations import relative_to_repository

        result = relative_to_repository(result, Path.cwd(), repository_root())
    return render(
        result, output.format, style if output.file is None else TerminalStyle(details=style.details)
    )


def repository_root() -> Path:
    """The root of the current repository; without one, the working directory."""
    here = Path.cwd()
    for variable in _ROOT_VARIABLES:
        root = os.environ.get(variable)
        if root and Path(root) in (here, *here.parents):
            return Path(root)
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def write_files(texts: Sequence[tuple[OutputTarget, str]]) -> None:
    """Write the outputs to files.

    :raises IcemigrateError: one cannot be written.
    """
    from icemigrate.commands.user_files import write_user_file

    for output, text in texts:
        if output.file is not None:
            write_user_file(output.file, text)


def require_writable_files(outputs: Sequence[OutputTarget]) -> None:
    """Check the files of outputs before a command starts.

    :raises IcemigrateError: one cannot be written.
    """
    files = [output.file for output in outputs if output.file is not None]
    if files:
        from icemigrate.commands.user_files import require_writable

        for file in files:
            require_writable(file)


def write_failure(
    failure: object, outputs: Sequence[OutputTarget], style: TerminalStyle, *, as_text: bool = True
) -> None:
    """Write an error to every output whose format supports it.

    :param as_text: whether it is also written to standard error, as text.
    """
    from icemigrate.render.formats import find_output_format, render

    for output in outputs:
        chosen = find_output_format(output.format)
        if not chosen.shows(type(failure)):
            continue
        if output.file is not None:
            # If the file is the cause, its error is being written already.
            try:
                write_files([(output, text_of(failure, output, style))])
            except IcemigrateError:
                continue
        elif chosen.for_programs:
            with suppress(IcemigrateError):
                write_stream(text_of(failure, output, style), is_rendered=True)
    if as_text:
        write_stream(render(failure, "text", style), sys.stderr, is_rendered=True)
