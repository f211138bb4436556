"""Shows progress on standard error while a plan runs."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from icemigrate.cli.invocation import InvocationOptions
    from icemigrate.render.progress_text import ProgressWriter


@contextmanager
def show_progress(settings: InvocationOptions) -> Iterator[ProgressWriter]:
    """A listener to events that shows them; the line that it writes on is ended, however the run ends."""
    from icemigrate.render.progress_text import ProgressWriter

    stream = io.StringIO() if settings.quiet else sys.stderr
    shown = ProgressWriter(stream, settings.style(stream))
    try:
        yield shown
    finally:
        shown.close()


def run_with_progress(
    settings: InvocationOptions, act: Callable[..., object], on_start: Callable[[], None]
) -> ExitCode:
    """Run an approved plan, show its progress, and print its result.

    :param act: a command's function with ``on_event`` and ``on_start``; its other arguments are bound.
    :param on_start: called before Spark is started.
    """
    with show_progress(settings) as shown:
        answer = act(on_event=shown, on_start=on_start)
    settings.answer(answer)
    return ExitCode.OK
