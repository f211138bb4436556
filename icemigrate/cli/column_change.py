"""What the commands that change the columns of a table share: options, approval and the run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from icemigrate.cli.approval import ApprovalPrompt, show_changes
from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice
from icemigrate.cli.options import apply_with_option, format_option, global_options, lock_timeout_option
from icemigrate.cli.progress import show_progress
from icemigrate.cli.streams import write_stream
from icemigrate.errors import ExitCode, Mistakes

if TYPE_CHECKING:
    from icemigrate.commands.column_changes import ColumnChanges
    from icemigrate.project.project_values import ApplyWith
    from icemigrate.results.command_results import PlanResult

_Command = TypeVar("_Command", bound=Callable[..., Any])
_ALTER = ApprovalPrompt("Make this change?", "makes it")

_allow_option = click.option(
    "--allow",
    metavar="CONSENT",
    multiple=True,
    help="Consent to a hazard without being asked, like `allow` in a file: "
    '"destructive market_data.trades.release". Repeatable.',
)


def column_change_options(command: _Command) -> _Command:
    """The options of all commands that change columns."""
    for option in (
        global_options,
        format_option("text", "json"),
        lock_timeout_option,
        apply_with_option,
        _allow_option,
    ):
        command = option(command)
    return command


def run_column_change(
    settings: InvocationOptions,
    request: ColumnChanges,
    allow: tuple[str, ...],
    apply_with: ApplyWith | None,
    lock_timeout_s: float | None,
) -> ExitCode:
    """Make a change, and print its result; a hazard without consent is asked about on a terminal.

    :raises UsageError: a consent is invalid, or there is no such table or column.
    :raises Mistakes: the change breaks a rule, or a consent is missing and there is no terminal.
    """
    import dataclasses

    from icemigrate.commands.column_changes import change_columns
    from icemigrate.commands.given_consents import parse_consents
    from icemigrate.frozen import replace

    project = dataclasses.replace(settings.open_project(), apply_with=apply_with)
    request = replace(request, allow=parse_consents(allow))
    is_asked = sys.stdin.isatty()
    try:
        with show_progress(settings) as shown:
            result = change_columns(
                project,
                settings.environment,
                request,
                approve=partial(_is_approved, settings) if is_asked else None,
                on_event=shown,
                on_start=SparkStartNotice().before_start,
                lock_timeout_s=lock_timeout_s,
            )
    except Mistakes as error:
        # The diagnostics are shown above it, so it repeats none of them.
        raise Mistakes(error.diagnostics, f"the columns of `{request.table}` are not changed") from error
    if result is None:
        write_stream("Cancelled: no changes were made.\n", sys.stderr)
        return ExitCode.ERROR
    settings.answer(result)
    return ExitCode.OK


def _is_approved(settings: InvocationOptions, plan: PlanResult) -> bool:
    show_changes(settings, plan, auto_approve=False)
    return _ALTER.is_agreed_to()
