"""What the kinds of ``repair`` share: take the lock, and write a history row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from icemigrate.execution.engine_choice import history_engine
from icemigrate.execution.environment_session import EnvironmentSession, current_operator
from icemigrate.execution.project_journal import open_journal
from icemigrate.execution.spark_start import engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.history.journal import Journal, LockedJournal

_Corrected = TypeVar("_Corrected")


def correct_history(
    session: EnvironmentSession,
    correct: Callable[[Journal], tuple[_Corrected, ...]],
    spark: SparkSession | None,
    on_start: Callable[[], None],
    lock_timeout_s: float | None,
) -> tuple[_Corrected, ...]:
    """Call a correction with the journal of the environment.

    :param on_start: called before Spark is started.
    :raises LockHeld: another process held the lock until the timeout.
    """
    engine = history_engine(session, spark, lambda: engine_of(session, spark, on_start))
    return correct(open_journal(session, engine, lock_timeout_s))


@contextmanager
def locked_for_repair(journal: Journal) -> Iterator[LockedJournal]:
    """The journal, while its lock is held for ``repair``.

    :raises LockHeld: another process held the lock until the timeout.
    """
    by = current_operator()
    with journal.hold_lock("repair", by.user, by.host) as held:
        yield held
