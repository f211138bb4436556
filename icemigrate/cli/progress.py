"""What runs is shown on standard error while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.cli.context import Settings
    from icemigrate.render.progress_text import Progress


@contextmanager
def progress(settings: Settings) -> Iterator[Progress]:
    """A listener to events that shows them; the line that it writes on is ended, however the run ends."""
    from icemigrate.render.progress_text import Progress

    shown = Progress(sys.stderr, settings.style(sys.stderr))
    try:
        yield shown
    finally:
        shown.close()


def carry_out(settings: Settings, act: Callable[..., object], on_start: Callable[[], None]) -> ExitCode:
    """Do what a person has approved, show it while it runs, and answer with what came of it.

    :param act: a use case that takes ``on_event`` and ``on_start``; its other arguments are bound to it.
    :param on_start: called before Spark is started.
    """
    with progress(settings) as shown:
        answer = act(on_event=shown, on_start=on_start)
    settings.answer(answer)
    return ExitCode.OK
