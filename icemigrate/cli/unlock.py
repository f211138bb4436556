"""``icemigrate unlock``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from icemigrate.cli.approval import ApprovalPrompt
from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice, pass_settings
from icemigrate.cli.options import auto_approve_option, format_option, global_options
from icemigrate.cli.streams import write_stream
from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.results.status_results import LockStatus


_QUESTION = ApprovalPrompt("Release the lock?", "releases it")


@click.command("unlock")
@auto_approve_option
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: InvocationOptions, auto_approve: bool) -> ExitCode:
    """Release the lock of a process that hangs.

    The lock of a process that died needs no `unlock`: the next process takes it over.  The history records
    who released the lock.
    """
    from icemigrate.commands.unlock import unlock

    def approve(lock: LockStatus) -> bool:
        from icemigrate.render.display import one_line

        write_stream(f"The lock is held by {one_line(lock.words)}.\n", sys.stderr)
        return auto_approve or _QUESTION.is_agreed_to()

    notice = SparkStartNotice()
    result = unlock(
        settings.open_project(), settings.environment, approve=approve, on_start=notice.before_start
    )
    settings.answer(result)
    return ExitCode.ERROR if result.lock is not None and not result.taken else ExitCode.OK
