"""What is done again because another writer committed first."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from icemigrate.engine.explain import is_commit_conflict

TRIES = 20
"""How often a commit is tried: two writers that never stop come in between five times running."""

_Result = TypeVar("_Result")


def until_first(act: Callable[[], _Result], longest_pause_s: float = 0) -> _Result:
    """Do it until no other writer has come between its reading and its own commit.

    :param longest_pause_s: waits a random time up to this before the next try.
    :raises Exception: another fault than that, or the last try's.
    """
    for _ in range(TRIES - 1):
        try:
            return act()
        except Exception as error:  # known by its Java cause alone
            if not is_commit_conflict(error):
                raise
        time.sleep(random.uniform(0, longest_pause_s))  # noqa: S311 (nothing secret)
    return act()
