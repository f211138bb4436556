"""Who is told of the statements of one table as they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from icemigrate.events import Event, Noted, StatementFinished, StatementStarted
from icemigrate.model.names import TableName
from icemigrate.plan import TablePlan

Listener: TypeAlias = Callable[[Event], None]


@contextmanager
def told(on_event: Listener, started: StatementStarted) -> Iterator[None]:
    """A block in which a statement runs; one that fails is not told as finished."""
    on_event(started)
    clock = time.monotonic()
    yield
    elapsed = time.monotonic() - clock
    on_event(StatementFinished(started.version, started.table, started.text, elapsed, started.on_copy))


@dataclass(slots=True)
class Telling:
    """Tells of the statements of one table as they run.

    :param of: how many there are.
    :param refill_branch: the branch on which a refill of this run writes; empty for the one of the plan.
    :param number: of the last that was begun.
    """

    version: str
    on_event: Listener
    of: int
    refill_branch: str = ""
    number: int = field(default=0, init=False)

    @contextmanager
    def statement(self, table: TableName, text: str, on_copy: bool = False) -> Iterator[None]:
        """See :func:`told`."""
        self.number += 1
        started = StatementStarted(self.version, table, text, self.number, self.of, on_copy)
        with told(self.on_event, started):
            yield

    def note(self, table: TableName, text: str) -> None:
        """Something worth saying."""
        self.on_event(Noted(self.version, table, text))

    def again(self, after: int) -> None:
        """The statements behind one of this number run again."""
        self.number = after


def telling(plan: TablePlan, version: str, on_event: Listener, refill_branch: str = "") -> Telling:
    """Who tells of a plan's statements."""
    return Telling(version, on_event, sum(len(step.statements) for step in plan.steps), refill_branch)
