"""What is written where, several at once: ``NAME`` and ``NAME=FILE`` of ``--format``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from icemigrate.cli.streams import write
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from icemigrate.render.style import Style

    _ParamType: TypeAlias = click.ParamType[Any]
else:
    # Older releases of Click have no parameter here.
    _ParamType = click.ParamType

_ROOT_VARIABLES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Where GitHub Actions and GitLab CI put the repository."""


class Output(Frozen):
    """One of the outputs that were asked for.

    :param format: its name in :data:`icemigrate.render.formats.FORMATS`.
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

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        """One output, or wrong usage."""
        if isinstance(value, Output):
            return value
        name, equals, file = str(value).partition("=")
        if name not in self.names:
            near = did_you_mean(name, self.names)
            known = ", ".join(f"`{known}`" for known in self.names)
            self.fail(f"there is no format `{name}`: {near or f'one of {known}'}", param, ctx)
        if equals and not file:
            self.fail(f"`{value}` names no file", param, ctx)
        return Output(name, Path(file) if file else None)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The formats that begin so."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


def text_of(result: object, output: Output, style: Style) -> str:
    """A result as an output has it; a file has no colour."""
    from icemigrate.render.formats import format_named, render
    from icemigrate.render.style import PLAIN

    if format_named(output.format).for_repository:
        from icemigrate.render.places import within

        result = within(result, Path.cwd(), repository_root())
    return render(result, output.format, style if output.file is None else PLAIN)


def repository_root() -> Path:
    """The folder of the repository that we are in; without one, the working directory."""
    here = Path.cwd()
    for variable in _ROOT_VARIABLES:
        root = os.environ.get(variable)
        if root and Path(root) in (here, *here.parents):
            return Path(root)
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def write_files(texts: Sequence[tuple[Output, str]]) -> None:
    """Write those that go to files.

    :raises IcemigrateError: one cannot be written.
    """
    from icemigrate.app.saving import write_whole

    for output, text in texts:
        if output.file is not None:
            write_whole(output.file, text)


def write_failure(failure: object, outputs: Sequence[Output], style: Style) -> None:
    """A fault in every output that can tell it, and for a person on standard error."""
    from icemigrate.render.formats import format_named, render

    for output in outputs:
        chosen = format_named(output.format)
        if type(failure) not in chosen.renderers:
            continue
        if output.file is not None:
            # Where the file is what failed, its fault is being told just now.
            try:
                write_files([(output, text_of(failure, output, style))])
            except IcemigrateError:
                continue
        elif chosen.for_programs:
            with suppress(IcemigrateError):
                write(text_of(failure, output, style), is_rendered=True)
    write(render(failure, "text", style), sys.stderr, is_rendered=True)
