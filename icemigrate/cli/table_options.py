"""Arguments and options that commands of ``table`` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from icemigrate.cli.invocation import InvocationOptions

_Command = TypeVar("_Command", bound=Callable[..., Any])

table_argument = click.argument("name")
"""NAME, as migration files write it."""


LARGEST_LIMIT = 10**18
"""DuckDB counts rows with 64 bits."""


def require_limit(_ctx: click.Context, _param: click.Parameter, value: int | None) -> int | None:
    """A number of rows that DuckDB can count to, or wrong usage."""
    if value is not None and value > LARGEST_LIMIT:
        raise click.BadParameter(f"{value} is too large: write at most {LARGEST_LIMIT}")
    return value


def _limit(ctx: click.Context, param: click.Parameter, value: int) -> int | None:
    return require_limit(ctx, param, value) or None


def limit_option(what: str, default: int) -> Callable[[_Command], _Command]:
    """``--limit``, which is ``None`` for all."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        metavar="NUMBER",
        callback=_limit,
        help=f"Show at most so many {what}; `0` for all.",
    )


def _picture(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and value.suffix.lower() != ".svg":
        raise click.BadParameter(f"`{value}` is no SVG file: write a name that ends in `.svg`")
    return value


def picture_option(what: str) -> Callable[[_Command], _Command]:
    """``-o FILE.svg``."""
    return click.option(
        "-o",
        "--output",
        "picture",
        type=click.Path(path_type=Path),
        metavar="FILE.svg",
        callback=_picture,
        help=f"Write the {what} to an SVG file.",
    )


def write_picture(settings: InvocationOptions, path: Path, text: str) -> None:
    """Write a picture, and say where it is.

    :raises IcemigrateError: the file cannot be written.
    """
    from icemigrate.commands.user_files import write_user_file

    write_user_file(path, text)
    settings.show_step(f"wrote `{path}`")


def snapshot_option(what: str, *names: str, required: bool = False) -> Callable[[_Command], _Command]:
    """``--snapshot``, or an option of another name: the text of a snapshot."""
    return click.option(
        *(names or ("--snapshot",)),
        metavar="SNAPSHOT",
        required=required,
        help=f"{what}: its id, a tag, a branch, or a time in ISO 8601, in UTC "
        "unless it has a zone; a day is its 00:00" + ("." if required else " (default: the current one)."),
    )
