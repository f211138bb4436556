"""The cycle collector of Python, and when it does nothing but harm."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_at_rest() -> Iterator[None]:
    """Without the cycle collector: a hundred thousand frozen values hold no cycle, and it costs a third.

    What was made meanwhile counts as old afterwards, so that the next collection of what is young skips it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # Both move all objects from one list to another, whatever their number.
            gc.freeze()
            gc.unfreeze()
            gc.enable()
