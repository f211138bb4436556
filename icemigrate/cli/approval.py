"""A plan is shown, and nothing is done before a person has said yes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from icemigrate.cli.context import Settings, write
from icemigrate.errors import StalePlan, UsageError

if TYPE_CHECKING:
    from icemigrate.results import PlanResult


def show_plan(settings: Settings, result: PlanResult) -> None:
    """The plan, before anybody is asked; beside the answer where that is for a program."""
    from icemigrate.render.formats import render

    stream = sys.stdout if settings.format == "text" else sys.stderr
    if not result.is_empty or not result.ready:
        write(render(result, "text", settings.style(stream)), stream)


def approved(question: str, asked: str, does: str) -> bool:
    """Whether the user agrees; the answer to nothing is no.

    :param asked: what is asked, after "whether", for where nobody can be.
    :param does: what ``--auto-approve`` does without asking.
    :raises UsageError: there is no terminal.
    """
    if not sys.stdin.isatty():
        raise UsageError(
            f"there is no terminal to ask on whether {asked}", f"`--auto-approve` {does} without asking"
        )
    return click.confirm(question, default=False, err=True)


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
