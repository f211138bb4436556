"""What is the same in every attempt of a commit, of one table or of several."""

from __future__ import annotations

import random

from icemigrate.frozen import replace
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import TablePlan
from icemigrate.spark.engine_port import Marker

TRIES = 40
"""How often a commit is tried; with the pauses between them some fifteen seconds."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


def pause_after(attempt: int) -> float:
    """The pause before the next attempt, in seconds; random, so that two processes do not collide again."""
    pause: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1))
    return pause * random.uniform(0.5, 1)  # noqa: S311 (nothing secret hangs on it)


def dated_marker(marker: Marker | None, plan: TablePlan, base: Table) -> Marker | None:
    """The marker with the rows before it as they are in the very state that the commit starts from.

    :param base: the table at the start of the commit.
    """
    if marker is None or marker.is_fixed or not plan.steps:
        return marker
    rows = base.snapshot if base.has_rows else None
    return replace(marker, before=rows.id if rows else None)


def another_attempt(number: int) -> str:
    """The note before an attempt that follows a conflict."""
    return f"another writer committed first; attempt {number} of {TRIES}"
