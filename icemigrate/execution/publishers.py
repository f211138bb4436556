"""Publishers of an environment: one commit per table, or one statement after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import Frozen
from icemigrate.planning.plan import Direction
from icemigrate.spark.engine_port import Engine
from icemigrate.spark.publish import DirectPublisher, Publisher

if TYPE_CHECKING:
    from icemigrate.spark.commit_ports import CommittingEngine


class EnvironmentPublishers(Frozen):
    """The publishers of a run.

    :param marked: leaves the migration's marker on tables.
    :param unmarked: leaves no marker; for undoing.
    """

    marked: Publisher
    unmarked: Publisher


def direct_publishers(engine: Engine) -> EnvironmentPublishers:
    """Publishers that run statements on the tables themselves."""
    return EnvironmentPublishers(DirectPublisher(engine), DirectPublisher(engine, tags=False))


def choose_publisher(
    session: EnvironmentSession, engine: CommittingEngine, *, marked: bool = True
) -> Publisher:
    """The publisher of an environment.

    ``publish: atomic`` needs a catalog with compare-and-swap.  Otherwise statements run on the tables
    themselves.

    :param marked: whether to put the migration's marker on tables, unless the environment or the catalog
        forbids it.
    """
    from icemigrate.spark.publish_atomic import AtomicPublisher

    environment, can = session.environment, session.catalog.capabilities
    tags = marked and environment.record == "tags" and can.tags
    if environment.publish == "atomic" and can.compare_and_swap:
        atomic = AtomicPublisher(engine, tags)
        session.on_close(atomic.close)
        return atomic
    return DirectPublisher(engine, tags)


def environment_publishers(
    session: EnvironmentSession, engine: CommittingEngine, direction: Direction = Direction.APPLY
) -> EnvironmentPublishers:
    """Both publishers of an environment.

    A manual change of columns is one commit, and leaves no marker.

    An undo of a table is one metadata commit already (two where a date returns with its partitions or its
    order, which Iceberg's library does not accept together), and may assert the table's snapshot, which a
    copy does not have. So it runs on the table itself.
    """
    from icemigrate.spark.publish_together import TransactionPublisher
    from icemigrate.spark.step_results import StepRunner

    if direction is Direction.ALTER:
        publisher = choose_publisher(session, engine, marked=False)
        return EnvironmentPublishers(publisher, publisher)
    marked, steps = choose_publisher(session, engine), StepRunner(engine, on_copies=False)
    together = TransactionPublisher(engine, steps, tags=False, signs=False) if marked.together else None
    return EnvironmentPublishers(marked, DirectPublisher(engine, tags=False, together=together))
