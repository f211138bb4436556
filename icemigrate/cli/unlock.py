"""``icemigrate unlock``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from icemigrate.cli.approval import Question
from icemigrate.cli.context import Settings, pass_settings
from icemigrate.cli.options import format_option, global_options
from icemigrate.cli.streams import write
from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.status_results import LockStatus


_QUESTION = Question("Take it away?", "the lock shall be taken away", "takes it away")


@click.command("unlock")
@click.option("--auto-approve", is_flag=True, help="Do not ask.")
@format_option("text", "json")
@global_options
@pass_settings
def command(settings: Settings, auto_approve: bool) -> ExitCode:
    """Take the lock away from a process that hangs.

    One that has died needs no unlocking: whoever waits takes its lock over.  The history keeps who did it.
    """
    from icemigrate.app.locking import unlock

    def approve(lock: LockStatus) -> bool:
        write(f"The lock is held by {lock.words}.\n", sys.stderr)
        if not (auto_approve or _QUESTION.is_agreed_to()):
            return False
        write("Starting Spark …\n", sys.stderr)
        return True

    result = unlock(settings.open_project(), settings.environment, approve=approve)
    settings.answer(result)
    return ExitCode.ERROR if result.lock is not None and not result.taken else ExitCode.OK
