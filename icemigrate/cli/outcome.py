"""How a command ends: every way out becomes one message and one of the exit codes."""

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

from icemigrate.cli.context import Settings
from icemigrate.cli.outputs import write_failure
from icemigrate.cli.streams import write
from icemigrate.debugging import DEBUG_VARIABLE, is_debugging
from icemigrate.errors import ExitCode, IcemigrateError, Mistakes, Terminated
from icemigrate.redaction import hide_environment

if TYPE_CHECKING:
    from icemigrate.results import Failure


def _limit_text(error: MemoryError | RecursionError) -> str:
    """What is said where the machine or Python ends, rather than a traceback."""
    if isinstance(error, MemoryError):
        return (
            "error: there is not enough memory\n    give it more, or split the largest files of the project\n"
        )
    return "error: something in the project's files or tables is nested too deeply\n    nest it less deeply\n"


_Handler: TypeAlias = "Callable[[int, FrameType | None], Any] | int"


def run(command: click.Command, args: Sequence[str] | None = None) -> int:
    """Run a command and say in one message what went wrong, if something did.

    Faults and mistakes go to standard error; with ``--format json`` to standard output too, as the document
    of ``schemas/error.schema.json``, so that a program always reads JSON.  Wrong usage that keeps the command
    from starting goes to standard error alone.
    """
    settings = Settings()
    hide_environment(os.environ.items())
    _open_streams()
    before = _terminable()
    try:
        # Click returns what the command returned, or the code that it was left with.
        code = command.main(
            args=None if args is None else list(args),
            prog_name="icemigrate",
            standalone_mode=False,
            obj=settings,
        )
        return int(code or ExitCode.OK)
    except IcemigrateError as fault:
        _tell(fault, settings)
        return fault.exit_code
    except click.ClickException as error:
        # Click's own code for wrong usage is 2, which means "there is something to do" here.
        write(_usage_text(error, sys.argv[1:] if args is None else args), sys.stderr)
        return ExitCode.USAGE
    except (click.exceptions.Abort, KeyboardInterrupt) as stopped:
        # The terminal's line with `^C` or the question in it is ended by Click already where it met Ctrl-C.
        line_end = "" if isinstance(stopped.__cause__, (KeyboardInterrupt, EOFError)) else "\n"
        write(f"{line_end}Interrupted.\n", sys.stderr)
        return ExitCode.INTERRUPTED
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else ExitCode.OK
    except (MemoryError, RecursionError) as error:
        write(_limit_text(error), sys.stderr)
        return ExitCode.ERROR
    except Exception as bug:
        write(_traceback(bug) if is_debugging() else _bug_text(bug), sys.stderr)
        return ExitCode.ERROR
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _open_streams() -> None:
    """Let what was closed before the start (``>&-``) take what is written to it, and lose it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (until the end)


def _terminable() -> _Handler | None:
    """Let ``SIGTERM`` end a command with one message, also before anything is carried out.

    :returns: what is to be put back; ``None`` where signals are not ours to handle.
    """
    if threading.current_thread() is not threading.main_thread():
        return None

    def end(_number: int, _frame: FrameType | None) -> None:
        raise Terminated("it was asked to end (SIGTERM)")

    return signal.signal(signal.SIGTERM, end)


def _usage_text(error: click.ClickException, args: Sequence[str]) -> str:
    from icemigrate.cli.elsewhere import usage_message

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return f"{error.format_message()}\n"
    lines = []
    if isinstance(error, click.UsageError) and error.ctx is not None:
        lines.append(error.ctx.get_usage())
        lines.append(f"`{error.ctx.command_path} --help` explains it.\n")
    return "\n".join([*lines, f"error: {usage_message(error, args)}"]) + "\n"


def _tell(fault: IcemigrateError, settings: Settings) -> None:
    write_failure(_failure(fault), settings.outputs, settings.style(sys.stderr))
    if is_debugging():
        write(_traceback(fault), sys.stderr)


def _traceback(error: BaseException) -> str:
    """As Python prints it, on a way that masks secrets: exceptions of drivers and of Java quote them."""
    import traceback

    return "".join(traceback.format_exception(error))


def _failure(fault: IcemigrateError) -> Failure:
    from icemigrate.results import Failure

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
