"""Options that several commands share, and the environment variables of options."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from icemigrate.cli.invocation import InvocationOptions
from icemigrate.cli.option_types import OneOf
from icemigrate.cli.outputs import OutputTarget, OutputType, require_writable_files
from icemigrate.cli.streams import write_stream
from icemigrate.errors import UsageError
from icemigrate.hidden_characters import escape_hidden_characters

_Command = TypeVar("_Command", bound=Callable[..., Any])

to_option = click.option(
    "--to", metavar="VERSION", help="Include pending migrations up to this version (default: all)."
)


def _seconds(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    from icemigrate.iceberg.retention import BadDuration, parse_seconds

    try:
        return None if value is None else parse_seconds(value)
    except BadDuration as error:
        raise click.BadParameter(str(error)) from error


lock_timeout_option = click.option(
    "--lock-timeout",
    "lock_timeout_s",
    metavar="TIME",
    envvar="ICEMIGRATE_LOCK_TIMEOUT",
    callback=_seconds,
    help="How long to wait for another process's lock: seconds (`30`), or a number and a unit (`5s`, "
    "`2m`); `0` to not wait (default: `2m`, longer than it takes to detect a dead process).",
)
log_argument = click.argument("log", required=False, type=click.Path(path_type=str))
checkpoint_option = click.option(
    "--checkpoint",
    type=click.Path(path_type=str),
    metavar="FOLDER",
    help="Where the progress is kept (default: `checkpoint` of the project file, or in the log).",
)
sources_option = click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="ADDRESS",
    help="Files of the OpenTelemetry Collector (`file:otel/traces.json?tenant=acme`) or topics of Kafka "
    "(`kafka://broker:9092/otlp_spans?kind=traces`). Repeatable (default: `from` of the project file).",
)
print_file_option = click.option("--dry-run", is_flag=True, help="Print the file instead of writing it.")
apply_with_option = click.option(
    "--apply-with",
    type=OneOf(["spark", "metadata", "auto"]),
    envvar="ICEMIGRATE_APPLY_WITH",
    help="Commit changes of metadata with Spark, in Python without Spark, or in Python with Spark for steps "
    "on rows and files (default: `apply_with` of the environment; without it, Spark runs the statements "
    "of `apply` on copies, and Python commits their result).",
)
auto_approve_option = click.option(
    "-y",
    "--auto-approve",
    is_flag=True,
    envvar="ICEMIGRATE_AUTO_APPROVE",
    help="Skip the approval prompt.",
)
overwrite_option = click.option(
    "--overwrite",
    metavar="FACT",
    multiple=True,
    help="Set this fact to the declared value, whatever the catalog has now. Repeatable; the "
    "conflict shows the name: market_data.trades:columns.price.type.",
)


redo_option = click.option(
    "--redo",
    metavar="VERSION",
    multiple=True,
    help="Apply only this version, which was rolled back; `10..12` for a range, `all` for all. Repeatable.",
)


def require_only_redo(redo: tuple[str, ...], *others: object) -> None:
    """Refuse other selections of versions together with ``--redo``.

    :param others: the plan's file, and the last version.
    :raises UsageError: one of them is given.
    """
    if redo and any(other is not None for other in others):
        raise UsageError("`--redo` applies only rolled-back versions", "remove the plan file and `--to`")


def refuse_repeated(
    command: click.Command, ctx: click.Context, args: Sequence[str]
) -> tuple[click.Parameter, ...]:
    """Refuse an option that takes one value and is given more than once: Click keeps only the last value.

    :returns: the parameters that the arguments give.
    :raises click.UsageError: there is one, or an option has no value, or a flag has one.
    """
    if ctx.resilient_parsing:
        return ()
    try:
        *_, order = command.make_parser(ctx).parse_args(list(args))
    except click.BadOptionUsage as error:
        error.ctx = ctx  # Click's parser leaves it out
        raise
    except click.UsageError:
        return ()  # Click raises it again when it parses the arguments itself
    for param, times in Counter(order).items():
        if not isinstance(param, click.Option) or param.multiple or param.count or param.is_flag:
            continue
        if times > 1:
            how_often = "twice" if times == 2 else f"{times} times"
            raise click.UsageError(f"`{param.opts[-1]}` is given {how_often}, but takes one value", ctx)
    return tuple(order)


_REMOVING_COMMANDS = frozenset(
    {"rollback", "maintain", "reset", "repair", "unlock", "table rollback", "table expire"}
)
"""Commands that undo or remove something: a variable that is set for `apply` must not say what."""
_OF_REMOVING_COMMANDS = frozenset({"--dry-run", "--detailed-exitcode"})
"""Options of these commands with a variable, beside settings."""
_WITHOUT_VARIABLE = frozenset({"--allow", "--help", "--overwrite", "--version"})
"""Options without a variable anywhere: consents name what they accept."""


def add_variables(name: str, command: click.Command) -> click.Command:
    """The command, whose options are also read from environment variables.

    :param name: of the command.
    """
    for param in command.params:
        if not isinstance(param, click.Option) or param.envvar is not None:
            continue
        option = max(param.opts, key=len)
        is_read = name not in _REMOVING_COMMANDS or option in _OF_REMOVING_COMMANDS
        if is_read and option not in _WITHOUT_VARIABLE:
            param.envvar = f"ICEMIGRATE_{option.removeprefix('--').replace('-', '_').upper()}"
    return command


_SETTINGS = frozenset(
    {"--auto-approve", "--env", "--format", "--git-base", "--lock-timeout", "--no-color", "--project"}
    | {"--quiet", "--verbose"}
)
"""Options that say how a command works, not what it does."""
_FALSE_WORDS = frozenset({"0", "false", "f", "no", "n", "off"})
"""As Click reads them."""


def note_variables(command: click.Command, ctx: click.Context, given: Collection[click.Parameter]) -> None:
    """Show which options of a run come from environment variables, other than settings of all commands.

    :param given: the parameters that the command line gives.
    """
    settings = ctx.find_object(InvocationOptions)
    if (settings is not None and settings.quiet) or {one.name for one in given} & {"help", "quiet"}:
        return
    for param in command.params:
        name = max(param.opts, key=len)
        if not isinstance(param, click.Option) or param.envvar is None or param in given or name in _SETTINGS:
            continue
        value = os.environ.get(str(param.envvar), "")
        if value and not (param.is_flag and value.lower() in _FALSE_WORDS):
            shown = escape_hidden_characters(value)
            write_stream(f"note: `{name}` is set by {param.envvar}={shown}\n", sys.stderr)


def format_option(*names: str) -> Callable[[_Command], _Command]:
    """``--format`` with these formats, the first one the default."""
    return click.option(
        "--format",
        type=OutputType(names),
        envvar="ICEMIGRATE_FORMAT",
        multiple=True,
        default=(OutputTarget(names[0]),),
        show_default=names[0],
        is_eager=True,
        expose_value=False,
        callback=_remember_outputs,
        help="Output format; with `json`, standard output contains only JSON. `NAME=FILE` writes "
        "to a file. Repeatable, for several files and standard output.",
    )


def _remember_outputs(ctx: click.Context, _param: click.Parameter, outputs: tuple[OutputTarget, ...]) -> None:
    places = [output.file for output in outputs]
    for place in places:
        if places.count(place) > 1:
            where = "standard output" if place is None else f"`{place}`"
            hint = " (`NAME=FILE` writes to a file)" if place is None else ""
            raise click.UsageError(f"several outputs go to {where}{hint}", ctx)
    ctx.ensure_object(InvocationOptions).outputs = outputs
    if not ctx.resilient_parsing:
        require_writable_files(outputs)


def _no_color(ctx: click.Context, param: click.Parameter, value: bool | None) -> None:
    _remember("color")(ctx, param, None if value is None else not value)


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is None:
            return
        if _is_given_before(ctx, param):
            if not _is_given(ctx, param):
                return  # an environment variable does not replace an option of the command line
            if not (isinstance(param, click.Option) and param.is_flag):
                raise click.UsageError(f"`{param.opts[-1]}` is given twice, but takes one value", ctx)
        setattr(ctx.ensure_object(InvocationOptions), name, value)

    return callback


def _is_given(ctx: click.Context, param: click.Parameter) -> bool:
    return ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE


def _is_given_before(ctx: click.Context, param: click.Parameter) -> bool:
    """Whether the command line has the option before the name of the command."""
    return ctx.parent is not None and _is_given(ctx.parent, param)


def _help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        write_stream(f"{ctx.get_help()}\n")
        ctx.exit()


# Click's own one exits with 1 when the reader of a pipe has closed it.
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
    """``--project``, ``--env``, ``--quiet`` and others, before or after the command's name."""
    for option in (
        help_option,
        click.option(
            "--no-color",
            is_flag=True,
            default=None,
            is_eager=True,
            expose_value=False,
            envvar="ICEMIGRATE_NO_COLOR",
            callback=_no_color,
            help="Disable colour.",
        ),
        click.option(
            "-v",
            "--verbose",
            is_flag=True,
            default=None,
            expose_value=False,
            envvar="ICEMIGRATE_VERBOSE",
            callback=_remember("verbose"),
            help="Show details, such as writers that a plan does not affect, and the durations of waits.",
        ),
        click.option(
            "-q",
            "--quiet",
            is_flag=True,
            default=None,
            is_eager=True,
            expose_value=False,
            envvar="ICEMIGRATE_QUIET",
            callback=_remember("quiet"),
            help="Show no progress: only the result, questions and errors; with `--auto-approve`, no plan "
            "either.",
        ),
        click.option(
            "-e",
            "--env",
            metavar="NAME",
            expose_value=False,
            envvar="ICEMIGRATE_ENV",
            callback=_remember("environment"),
            help="Environment to use (default: the project's default).",
        ),
        click.option(
            "--project",
            metavar="FILE",
            type=click.Path(path_type=Path),
            expose_value=False,
            envvar="ICEMIGRATE_PROJECT",
            callback=_remember("project"),
            help="Project file, or its folder (default: the nearest `icemigrate.yaml` in the "
            "current folder or above it).",
        ),
    ):
        command = option(command)
    return command
