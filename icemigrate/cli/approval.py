"""A plan is shown, and nothing is done before a person has said yes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from icemigrate.cli.context import Settings
from icemigrate.cli.streams import write
from icemigrate.errors import StalePlan, UsageError

if TYPE_CHECKING:
    from icemigrate.results import PlanResult


def show_plan(settings: Settings, result: PlanResult) -> None:
    """The plan, before anybody is asked; beside the answer where that is for a program."""
    from icemigrate.render.formats import render

    stream = sys.stdout if settings.format == "text" else sys.stderr
    if not result.is_empty or not result.ready:
        write(render(result, "text", settings.style(stream)), stream, is_rendered=True)


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked before anything is done.

    :param words: the question.
    :param asked: what it asks, after "whether", for where nobody can be asked.
    :param does: what ``--auto-approve`` does without asking.
    """

    words: str
    asked: str
    does: str

    def require_terminal(self) -> None:
        """Refuse where nobody can be asked; before what takes time, and would be for nothing.

        :raises UsageError: there is no terminal.
        """
        if not sys.stdin.isatty():
            raise UsageError(
                f"there is no terminal to ask on whether {self.asked}",
                f"`--auto-approve` {self.does} without asking",
            )

    def is_agreed_to(self) -> bool:
        """Whether the user agrees; the answer to nothing is no.

        :raises UsageError: there is no terminal.
        """
        self.require_terminal()
        return click.confirm(self.words, default=False, err=True)


@contextmanager
def made_just_now(command: str) -> Iterator[None]:
    """Where a plan was shown and agreed to at once, a stale one is made anew by the same command.

    :param command: of icemigrate.
    :raises StalePlan: as it is raised within, with that as its hint.
    """
    try:
        yield
    except StalePlan as stale:
        from icemigrate.plan_file import REMAKE

        if stale.hint == REMAKE:
            stale.hint = f"run `icemigrate {command}` again"
        raise
