"""Activities that show how much of some work is done, how fast it goes, and how long the rest takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from icemigrate.system.activity import activity

_LEAST_ELAPSED_S = 1.0
"""Before this time, neither a rate nor a remaining time is shown."""
_SHOWN_IN_MINUTES_S = 120
Share: TypeAlias = Callable[[], "float | None"]
"""How much is done, from 0 to 1; ``None`` where it is not known now.  Called from another thread."""


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """What work is counted in.

    :param amount: the text of a number, without the name of the unit.
    :param name: follows the number; empty where the text has a unit.
    """

    amount: Callable[[int], str] = "{:,}".format
    name: str = ""

    def text(self, number: float) -> str:
        """``1,200 rows``."""
        return f"{self.amount(round(number))}{self.name and ' '}{self.name}"


ROWS, FILES = WorkUnit(name="rows"), WorkUnit(name="files")


def remaining_text(elapsed_s: float, share: float) -> str:
    """The time that the rest takes at the speed so far.

    :param share: how much is done; above 0.
    """
    left = elapsed_s * (1 - share) / share
    if left >= _SHOWN_IN_MINUTES_S:
        return f"about {left / 60:.0f} min left"
    return f"about {left:.0f} s left"


def measured_text(what: str, unit: WorkUnit, done: float, total: int | None, elapsed_s: float) -> str:
    """``Reading a.csv: 31 MB of 120 MB, 10 MB/s, about 9 s left``.

    :param total: ``None`` where it is not known.
    """
    if not done:
        return what
    parts = [unit.text(done) if not total else f"{unit.amount(round(done))} of {unit.text(total)}"]
    if elapsed_s >= _LEAST_ELAPSED_S:
        parts.append(f"{unit.text(done / elapsed_s)}/s")
        if total and done < total:
            parts.append(remaining_text(elapsed_s, done / total))
    return f"{what}: {', '.join(parts)}"


@contextmanager
def measured_activity(
    what: str,
    unit: WorkUnit,
    total: int | None,
    share: Share = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[int], None]]:
    """A block of work, which calls the function that it gets with each amount that it has done.

    :param share: gives the amount of work that something else does.
    :param clock: in seconds.
    """
    began, counted = clock(), 0

    def add(amount: int) -> None:
        nonlocal counted
        counted += amount

    def describe() -> str:
        part, done = share(), float(counted)
        whole = total
        if part is not None and total:
            done = part * total
        elif part and not total:
            whole = round(done / part)  # an estimate: shown only as the remaining time
            text = measured_text(what, unit, done, None, clock() - began)
            is_early = clock() - began < _LEAST_ELAPSED_S
            return text if is_early or done >= whole else f"{text}, {remaining_text(clock() - began, part)}"
        return measured_text(what, unit, done, whole, clock() - began)

    with activity(describe):
        yield add
