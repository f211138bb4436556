"""Arguments and options that commands of ``table`` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from icemigrate.cli.invocation import InvocationOptions
from icemigrate.cli.option_types import WholeNumber
from icemigrate.errors import UsageError
from icemigrate.iceberg.names import BadName, format_path
from icemigrate.iceberg.option_names import (
    parse_assignment,
    parse_column_names,
    parse_column_path,
    parse_column_paths,
)

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Value = TypeVar("_Value")

table_argument = click.argument("name")
"""NAME, as migration files write it."""


ROWS = WholeNumber(0, 10**18, example="10")
"""A number of rows: DuckDB counts them with 64 bits."""
_QUOTING = "write a name with a separator in double quotes or backticks, and double a quote inside"


def _read(param: click.Parameter, parse: Callable[[str], _Value], text: str) -> _Value:
    try:
        return parse(text)
    except BadName as error:
        where = param.opts[0] if isinstance(param, click.Option) else str(param.metavar or param.name).upper()
        hint = _QUOTING if '"' in text or "`" in text else "write the name of a column there"
        raise UsageError(f"`{where}`: {error}", hint) from error


def column_path(_ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The path of a column, as migration files write it."""
    return None if value is None else format_path(_read(param, parse_column_path, value))


def column_paths(_ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Paths of columns with commas between them, each as migration files write it."""
    return () if value is None else tuple(map(format_path, _read(param, parse_column_paths, value)))


def column_names(_ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Names of columns with commas between them, without their quotes."""
    names = () if value is None else _read(param, parse_column_names, value)
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"`{param.opts[0]}`: column `{name}` is given twice", "give each column once")
    return names


def column_assignments(
    _ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Expressions by the names of columns, from texts such as `amount=amount * 2`."""
    found = dict[str, str]()
    for text in values:
        name, expression = _read(param, parse_assignment, text)
        if not expression:
            is_empty = text.endswith("=")
            raise UsageError(
                f"`--set`: `{text}` is not `COLUMN=EXPRESSION`",
                "write an expression after `=`; an empty text is `''`"
                if is_empty
                else "write it like `amount=amount * 2`",
            )
        if name in found:
            raise UsageError(f"`--set`: column `{name}` is set twice", "remove one of the two")
        found[name] = expression
    return found


def _limit(_ctx: click.Context, _param: click.Parameter, value: int) -> int | None:
    return value or None


def limit_option(what: str, default: int, chosen: str = "") -> Callable[[_Command], _Command]:
    """``--limit``, which is ``None`` for all.

    :param chosen: which of them are shown, such as ``the newest ones``.
    """
    return click.option(
        "--limit",
        type=ROWS,
        default=default,
        show_default=True,
        metavar="NUMBER",
        callback=_limit,
        help=f"How many {what} to show at most{chosen and f', {chosen}'}; `0` for all.",
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
