"""The engine of an environment: Spark's, or commits of metadata in Python (``apply_with``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icemigrate.errors import UsageError
from icemigrate.events import Event
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.execution.spark_start import LazySpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.publish_atomic import CommittingEngine


@dataclass(slots=True)
class LazyEngine:
    """The engine of an opened environment, made on first access.

    :param session: a running Spark session; without it one is started where Spark is needed.
    :param on_start: called right before that.
    """

    environment_session: EnvironmentSession
    session: SparkSession | None
    on_start: Callable[[], None]
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
        spark = LazySpark(session, self.session, self.on_start)
        if apply_with == "spark":
            return spark(on_event)
        from icemigrate.metadata_engine.engine import MetadataEngine
        from icemigrate.metadata_engine.open_store import open_table_store

        settings = session.catalog.settings
        store = open_table_store(settings)
        if store is None and apply_with == "metadata":
            raise UsageError(
                f"`apply_with: metadata` does not support catalogs of type `{settings.type}`",
                "use `--apply-with spark` for this environment",
            )
        if store is None:
            return spark(on_event)
        engine = MetadataEngine(
            store, session.catalog, None if apply_with == "metadata" else lambda: spark(on_event)
        )
        session.on_close(engine.close)
        return engine
