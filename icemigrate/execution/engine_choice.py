"""The engine of an environment: Spark's, or commits of metadata in Python (``apply_with``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from icemigrate.errors import MissingExtra, UsageError, extra_hint
from icemigrate.events import Event
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.execution.spark_start import LazySpark, engine_of, has_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.metadata_engine.engine import MetadataEngine
    from icemigrate.spark.engine_port import Engine
    from icemigrate.spark.publish_atomic import CommittingEngine
    from icemigrate.spark.spark_engine import SparkEngine

METADATA_LIBRARIES = ("fastavro", "pyarrow")
"""What commits in Python need; the extra ``metadata`` has them."""


@dataclass(slots=True)
class LazyEngine:
    """The engine of an opened environment, made on first access.

    :param session: a running Spark session; without it one is started where Spark is needed.
    :param on_start: called right before that.
    :param prefers_python: whether ``apply_with: spark``, which is about statements of ``apply``, is read as
        ``auto``: an undo is commits of metadata, and a baseline changes no table.
    """

    environment_session: EnvironmentSession
    session: SparkSession | None
    on_start: Callable[[], None]
    prefers_python: bool = False
    engine: CommittingEngine | None = None

    def __call__(self, on_event: Callable[[Event], None] = lambda event: None) -> CommittingEngine:
        """The engine, the same one every time.

        :param on_event: takes the start of Spark, where Spark is started.
        :raises UsageError: the environment's ``apply_with`` does not fit its catalog.
        """
        if self.engine is None:
            self.engine = self._make(on_event)
        return self.engine

    @property
    def runs_spark(self) -> bool:
        """Whether Spark runs already, or runs in any case."""
        return self.session is not None or (self.engine is not None and self.engine.runs_sql)

    def _make(self, on_event: Callable[[Event], None]) -> CommittingEngine:
        session = self.environment_session
        apply_with = session.environment.apply_with
        if apply_with == "spark" and self.prefers_python:
            apply_with = "auto"
        spark = LazySpark(session, self.session, self.on_start)
        if apply_with == "spark":
            return spark(on_event)
        if apply_with == "auto":
            return _metadata_engine(session, self.session, lambda: spark(on_event)) or spark(on_event)
        if missing := [library for library in METADATA_LIBRARIES if find_spec(library) is None]:
            raise MissingExtra(f"`apply_with: metadata` needs {', '.join(missing)}", extra_hint("metadata"))
        found = _metadata_engine(session, self.session)
        if found is None:
            raise UsageError(
                f"`apply_with: metadata` does not support catalogs of type `{session.catalog.settings.type}`",
                "use `--apply-with spark` for this environment",
            )
        return found


def history_engine(
    session: EnvironmentSession, spark: SparkSession | None, otherwise: Callable[[], Engine]
) -> Engine:
    """What writes the history and its lock: commits in Python, whatever changes the tables.

    :param spark: a running session, which sees the history as it is.
    :param otherwise: the engine where Python cannot: the catalog has no store, or a library is missing.
    """
    return _metadata_engine(session, spark) or otherwise()


def _metadata_engine(
    session: EnvironmentSession,
    running: SparkSession | None,
    start_spark: Callable[[], SparkEngine] | None = None,
) -> MetadataEngine | None:
    """The engine that commits in Python, closed with the session; ``None`` where the environment has none."""
    if any(find_spec(library) is None for library in METADATA_LIBRARIES):
        return None
    from icemigrate.metadata_engine.engine import MetadataEngine
    from icemigrate.metadata_engine.open_store import open_table_store

    store = open_table_store(session.catalog.settings)
    if store is None:
        return None
    engine = MetadataEngine(store, session.catalog, start_spark)
    if running is not None and has_catalog(running, session.environment.catalog.name):
        engine.follow(engine_of(session, running))
    session.on_close(engine.close)
    return engine
