"""The plan on the terminal, and the approval prompt."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from icemigrate.cli.invocation import InvocationOptions
from icemigrate.cli.streams import write_stream
from icemigrate.errors import StalePlan, UsageError

if TYPE_CHECKING:
    from icemigrate.results.command_results import PlanResult


def show_plan(settings: InvocationOptions, result: PlanResult, *, auto_approve: bool) -> None:
    """Write the plan of migrations as :func:`show_changes` does, unless it is empty.

    A plan that cannot be carried out is always written, because it shows why.
    """
    if not result.ready or not result.is_empty:
        show_changes(settings, result, auto_approve=auto_approve and result.ready)


def show_changes(settings: InvocationOptions, result: object, *, auto_approve: bool) -> None:
    """Write what a command is about to do to standard output; to standard error where the answer is not text.

    With ``--quiet`` it is written only for the approval prompt.
    """
    from icemigrate.render.formats import render

    if settings.quiet and auto_approve:
        return
    stream = sys.stdout if settings.format == "text" else sys.stderr
    write_stream(render(result, "text", settings.style(stream)), stream, is_rendered=True)


@dataclass(frozen=True, slots=True)
class ApprovalPrompt:
    """The approval prompt of a command.

    :param text: the question.
    :param auto_approve_effect: what ``--auto-approve`` does without asking: ``applies them``.
    """

    text: str
    auto_approve_effect: str

    def require_terminal(self) -> None:
        """Refuse to go on without a terminal, before anything slow starts.

        :raises UsageError: standard input is not a terminal.
        """
        if not sys.stdin.isatty():
            raise UsageError(
                "cannot ask for approval: standard input is not a terminal",
                f"`--auto-approve` {self.auto_approve_effect} without asking",
            )

    def is_agreed_to(self) -> bool:
        """Whether the user agrees; an empty answer is no.

        :raises UsageError: standard input is not a terminal.
        """
        self.require_terminal()
        options = click.get_current_context().find_object(InvocationOptions) or InvocationOptions()
        asked = time.monotonic()
        try:
            return click.confirm(self.text, default=False, err=True)
        finally:
            options.began += time.monotonic() - asked


@contextmanager
def replan_hint(command: str) -> Iterator[None]:
    """Where a plan was shown and agreed to at once, a stale one is made anew by the same command.

    :param command: of icemigrate.
    :raises StalePlan: as it is raised within, with that as its hint.
    """
    try:
        yield
    except StalePlan as stale:
        from icemigrate.planning.plan_file import REPLAN_HINT

        if stale.hint == REPLAN_HINT:
            stale.hint = f"run `icemigrate {command}` again"
        raise
