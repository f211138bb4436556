"""How an environment's tables are changed: in one commit each, or statement by statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icemigrate.app.world import Opened

if TYPE_CHECKING:
    from icemigrate.engine.publish import Publisher
    from icemigrate.engine.spark import SparkEngine
    from icemigrate.executor import Ways


def publisher(world: Opened, engine: SparkEngine, *, marked: bool = True) -> Publisher:
    """Who carries changes out in an environment.

    ``publish: atomic`` needs a catalog whose commits assert what they were made on; without that, and with
    ``publish: direct``, statements run on the tables themselves.

    :param marked: whether tables get the migration's marker at all.  Even then they get none with
        ``record: history``, nor where a catalog is harmed by tags.
    """
    from icemigrate.engine.publish_atomic import AtomicPublisher
    from icemigrate.engine.publish_direct import DirectPublisher

    environment, can = world.environment, world.catalog.capabilities
    tags = marked and environment.record == "tags" and can.tags
    if environment.publish == "atomic" and can.compare_and_swap:
        atomic = AtomicPublisher(engine, tags)
        world.at_end(atomic.close)
        return atomic
    return DirectPublisher(engine, tags)


def ways(world: Opened, engine: SparkEngine) -> Ways:
    """Both publishers of an environment: with the migration's marker, and for undoing without it.

    What is undone of a table is one metadata commit already (two where a date comes back beside its
    partitions or its order, which Iceberg's library does not take at once), and may assert the table's
    snapshot, which a copy does not have: so it is made on the table itself.
    """
    from icemigrate.engine.publish_direct import DirectPublisher
    from icemigrate.executor import Ways

    return Ways(publisher(world, engine), DirectPublisher(engine, tags=False))
