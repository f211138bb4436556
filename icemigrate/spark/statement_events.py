"""Events for the statements of one table as they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from icemigrate.events import Event, NoteAdded, StatementFinished, StatementStarted
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan import Step, TablePlan
from icemigrate.system.activity import activity

Listener: TypeAlias = Callable[[Event], None]


@contextmanager
def announce_statement(on_event: Listener, started: StatementStarted) -> Iterator[None]:
    """A block in which a statement runs; no finish event follows a failure."""
    on_event(started)
    clock = time.monotonic()
    with activity("Running the statement", is_announced=True):
        yield
    elapsed = time.monotonic() - clock
    on_event(StatementFinished(started.version, started.table, started.text, elapsed, started.on_copy))


@dataclass(slots=True)
class StatementAnnouncer:
    """Announces the statements of one table as they run.

    :param of: total number of statements.
    :param refill_branch: the branch on which a refill of this run writes; empty for the one of the plan.
    :param number: of the last statement that began.
    """

    version: str
    on_event: Listener
    of: int
    refill_branch: str = ""
    number: int = field(default=0, init=False)

    @contextmanager
    def statement(self, table: TableName, text: str, on_copy: bool = False) -> Iterator[None]:
        """See :func:`announce_statement`."""
        self.number += 1
        started = StatementStarted(self.version, table, text, self.number, self.of, on_copy)
        with announce_statement(self.on_event, started):
            yield

    def note(self, table: TableName | None, text: str) -> None:
        """Announce a note; ``None`` for one about the whole migration."""
        self.on_event(NoteAdded(self.version, table, text))

    def each(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Steps that run one after another; each begins with its own number, whatever the one before ran."""
        for step in steps:
            first = self.number
            yield step
            self.number = first + len(step.statements)

    def again(self, after: int) -> None:
        """Run the statements after this number again."""
        self.number = after


def statement_announcer(
    plan: TablePlan, version: str, on_event: Listener, refill_branch: str = ""
) -> StatementAnnouncer:
    """The announcer of a plan's statements."""
    return StatementAnnouncer(
        version, on_event, sum(len(step.statements) for step in plan.steps), refill_branch
    )
