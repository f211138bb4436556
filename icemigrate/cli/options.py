"""Options that several commands share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from icemigrate.cli.context import Settings
from icemigrate.cli.outputs import Output, OutputType
from icemigrate.cli.streams import write
from icemigrate.errors import UsageError

_Command = TypeVar("_Command", bound=Callable[..., Any])

to_option = click.option(
    "--to", metavar="VERSION", help="Pending migrations up to this one; without it all of them."
)
lock_timeout_option = click.option(
    "--lock-timeout",
    "lock_timeout_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="How long to wait for somebody else's lock; 0 for not at all. Without it 120: longer than it takes "
    "to see that a holder is gone.",
)
overwrite_option = click.option(
    "--overwrite",
    metavar="FACT",
    multiple=True,
    help="Set this fact to what the file says, whatever the catalog has now. May be repeated; "
    "the conflict names it: market_data.trades:columns.price.type.",
)


redo_option = click.option("--redo", metavar="VERSION", help="This version alone, which was rolled back.")


def require_one_version(redo: str | None, *others: object) -> None:
    """Refuse what says something else of the versions to apply beside ``--redo``.

    :param others: the plan's file, and the last version.
    :raises UsageError: one of them is there.
    """
    if redo is not None and any(other is not None for other in others):
        raise UsageError("`--redo` applies one version alone", "leave the plan's file and `--to` away")


def refuse_repeated(command: click.Command, ctx: click.Context, args: Sequence[str]) -> None:
    """Refuse an option that takes one value and is given more than once: Click keeps only the last value.

    :raises click.UsageError: there is one.
    """
    if ctx.resilient_parsing:
        return
    try:
        *_, order = command.make_parser(ctx).parse_args(list(args))
    except click.UsageError:
        return  # Click raises it again when it parses the arguments itself
    for param, times in Counter(order).items():
        if not isinstance(param, click.Option) or param.multiple or param.count or param.is_flag:
            continue
        if times > 1:
            how_often = "twice" if times == 2 else f"{times} times"
            hint = ": run the command once for each version, the lowest first" if param.name == "redo" else ""
            raise click.UsageError(f"`{param.opts[-1]}` is given {how_often}, and takes one value{hint}", ctx)


def format_option(*names: str) -> Callable[[_Command], _Command]:
    """``--format`` with these formats, the first one the default."""
    return click.option(
        "--format",
        type=OutputType(names),
        multiple=True,
        default=(Output(names[0]),),
        show_default=names[0],
        is_eager=True,
        expose_value=False,
        callback=_remember_outputs,
        help="How to write the answer; with `json` standard output holds nothing else. "
        "`NAME=FILE` writes to a file. May be repeated, for several files and standard output.",
    )


def _remember_outputs(ctx: click.Context, _param: click.Parameter, outputs: tuple[Output, ...]) -> None:
    places = [output.file for output in outputs]
    for place in places:
        if places.count(place) > 1:
            where = "standard output" if place is None else f"`{place}`"
            hint = " (`NAME=FILE` writes to a file)" if place is None else ""
            raise click.UsageError(f"several outputs go to {where}{hint}", ctx)
    ctx.ensure_object(Settings).outputs = outputs


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
