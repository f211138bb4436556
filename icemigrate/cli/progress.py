"""What runs is shown on standard error while it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

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
