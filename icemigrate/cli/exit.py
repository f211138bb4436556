"""The end of a command: every outcome becomes one message and one exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from icemigrate.cli.activity_lines import ActivityLines, is_live
from icemigrate.cli.invocation import InvocationOptions
from icemigrate.cli.outputs import write_failure
from icemigrate.cli.streams import write_stream
from icemigrate.errors import ExitCode, IcemigrateError, Mistakes, Terminated
from icemigrate.redaction import hide_environment
from icemigrate.system.activity import show_activities
from icemigrate.system.process import DEBUG_VARIABLE, is_debugging
from icemigrate.system.waits import show_waits

if TYPE_CHECKING:
    from icemigrate.results.command_results import Failure


def _limit_text(error: MemoryError | RecursionError) -> str:
    """A message for limits of the machine or of Python, instead of a traceback."""
    if isinstance(error, MemoryError):
        return (
            "error: out of memory\n    give the process more memory, or split the largest files "
            "of the project\n"
        )
    return "error: the project's files or tables are nested too deeply\n    reduce the nesting\n"


_Handler: TypeAlias = "Callable[[int, FrameType | None], Any] | int"


def run(command: click.Command, args: Sequence[str] | None = None) -> int:
    """Run a command and report its errors in one message.

    Errors go to standard error; with ``--format json`` to standard output too, as the document of
    ``schemas/error.schema.json``, so that a program always reads JSON.  Wrong usage that prevents the start
    goes to standard error only.
    """
    settings = InvocationOptions()
    if args is None:
        from icemigrate.system.process_identity import seconds_since_start

        settings.began -= seconds_since_start()
    hide_environment(os.environ.items())
    _open_streams()
    before = _terminable()
    lines = ActivityLines(sys.stderr, settings, live=is_live(sys.stderr))
    try:
        # Click returns the result of the command, or its exit code.
        with show_waits(settings.show_step), show_activities(lines):
            code = command.main(
                args=None if args is None else list(args),
                prog_name="icemigrate",
                standalone_mode=False,
                obj=settings,
            )
        return int(code or ExitCode.OK)
    except IcemigrateError as fault:
        _report_error(fault, settings)
        return fault.exit_code
    except click.ClickException as error:
        # Click's own code for wrong usage is 2, which means "there is something to do" here.
        write_stream(_usage_text(error, sys.argv[1:] if args is None else args), sys.stderr)
        return ExitCode.USAGE
    except (click.exceptions.Abort, KeyboardInterrupt) as stopped:
        # Click already ends the terminal's line with `^C` or the question in it.
        line_end = "" if isinstance(stopped.__cause__, (KeyboardInterrupt, EOFError)) else "\n"
        write_stream(f"{line_end}Interrupted.\n", sys.stderr)
        return ExitCode.INTERRUPTED
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else ExitCode.OK
    except (MemoryError, RecursionError) as error:
        write_stream(_limit_text(error), sys.stderr)
        return ExitCode.ERROR
    except Exception as bug:
        if isinstance(bug, FileNotFoundError) and not _has_working_directory():
            write_stream(
                "error: the working directory was deleted\n    change to another folder\n", sys.stderr
            )
            return ExitCode.ERROR
        given = sys.argv[1:] if args is None else args
        if isinstance(bug, UnicodeEncodeError) and (wrong := _undecoded(given)) is not None:
            write_stream(f"error: the argument `{wrong}` is not UTF-8\n    write it in UTF-8\n", sys.stderr)
            return ExitCode.USAGE
        write_stream(_traceback(bug) if is_debugging() else _bug_text(bug), sys.stderr)
        return ExitCode.ERROR
    finally:
        lines.close()
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _open_streams() -> None:
    """Replace streams that were closed before the start (``>&-``) by empty ones that drop their output."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 (until the end)


def _undecoded(args: Sequence[str]) -> str | None:
    """The first argument with bytes that are not UTF-8, which Python has as surrogates."""
    return next((arg for arg in args if any("\udc80" <= c <= "\udcff" for c in arg)), None)


def _has_working_directory() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 (the same call)
    except FileNotFoundError:
        return False
    return True


def _terminable() -> _Handler | None:
    """Let ``SIGTERM`` end a command with one message, also before it runs anything.

    :returns: the previous handler; ``None`` where this thread cannot handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        return None

    def end(_number: int, _frame: FrameType | None) -> None:
        raise Terminated("stopped by SIGTERM")

    return signal.signal(signal.SIGTERM, end)


def _usage_text(error: click.ClickException, args: Sequence[str]) -> str:
    from icemigrate.cli.other_tool_commands import usage_message

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return f"{error.format_message()}\n"
    lines = []
    if isinstance(error, click.UsageError) and error.ctx is not None:
        lines.append(error.ctx.get_usage())
        lines.append(f"`{error.ctx.command_path} --help` shows the usage.\n")
    return "\n".join([*lines, f"error: {usage_message(error, args)}"]) + "\n"


def _report_error(fault: IcemigrateError, settings: InvocationOptions) -> None:
    as_text = settings.log_format == "text"
    write_failure(_failure(fault), settings.outputs, settings.style(sys.stderr), as_text=as_text)
    if not as_text:
        from icemigrate.render.log_lines import LineEvent

        fields = {"error": type(fault).__name__, "message": fault.message, "hint": fault.hint}
        settings.log(LineEvent("error", "failed", {**fields, "exit_code": int(fault.exit_code)}))
    if is_debugging():
        write_stream(_traceback(fault), sys.stderr)


def _traceback(error: BaseException) -> str:
    """A traceback with secrets masked: exceptions of drivers and of Java quote them."""
    import traceback

    return "".join(traceback.format_exception(error))


def _failure(fault: IcemigrateError) -> Failure:
    from icemigrate.results.command_results import Failure

    return Failure(
        error=type(fault).__name__,
        message=fault.message,
        hint=fault.hint,
        exit_code=int(fault.exit_code),
        diagnostics=fault.diagnostics if isinstance(fault, Mistakes) else (),
    )


def _bug_text(bug: Exception) -> str:
    what = " ".join(f"{type(bug).__name__}: {bug}".split())
    return f"this is a bug in icemigrate: {what[:500]} ({DEBUG_VARIABLE}=1 shows the traceback)\n"
