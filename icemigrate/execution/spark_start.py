"""The Spark of an environment."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.errors import CatalogError, UsageError, os_error_reason
from icemigrate.events import Event, SparkStarted
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.project import Environment, spark_conf
from icemigrate.spark.session_settings import SparkSettings
from icemigrate.system.activity import activity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.spark_engine import SparkEngine


def engine_of(
    environment_session: EnvironmentSession,
    spark: SparkSession | None,
    on_start: Callable[[], None] = lambda: None,
    packages: tuple[str, ...] = (),
) -> SparkEngine:
    """The engine of an open project's environment.

    A session that is opened for it in a running Spark is closed with the project: no other code has it, and
    the catalog's connections would stay open as long as the JVM lives.

    :param packages: Maven coordinates of further jars for a Spark that starts.
    :raises: as :func:`open_engine`.
    """
    was_running = _is_running()
    engine = open_engine(environment_session.environment, spark, on_start, packages)
    if was_running and engine.session is not spark:
        environment_session.on_close(engine.close)
    return engine


def _is_running() -> bool:
    """Whether this process has a Spark; one that never imported PySpark has none."""
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._active_spark_context is not None


def open_engine(
    environment: Environment,
    spark: SparkSession | None,
    on_start: Callable[[], None] = lambda: None,
    packages: tuple[str, ...] = (),
) -> SparkEngine:
    """The engine of an environment.

    :param spark: a running session; without it one is started.
    :param on_start: called right before one is started, which takes seconds.
    :param packages: Maven coordinates of further jars for it.
    :raises UsageError: see :func:`spark_settings`.
    :raises CatalogError: the folder of its SQLite file cannot be created.
    :raises EngineError: Java or Spark failed.
    """
    from icemigrate.spark.session import start_spark
    from icemigrate.spark.spark_engine import SparkEngine

    settings = dataclasses.replace(spark_settings(environment), packages=packages)
    if environment.catalog.type == "sqlite" and environment.catalog.uri is not None:
        # SQLite creates the file, but not the folder.
        _make_folder(Path(environment.catalog.uri).parent)
    name = settings.catalog_name
    if spark is None or not has_catalog(spark, name):
        # Where Spark runs already, this is another session of it, with the catalog added.
        if not _is_running():
            on_start()
        with activity("Starting Java", is_announced=True):
            return SparkEngine(start_spark(settings), name, is_own=True)
    return SparkEngine(spark, name)


def has_catalog(spark: SparkSession, name: str) -> bool:
    """Whether a session is configured for a catalog."""
    return spark.conf.get(f"spark.sql.catalog.{name}", None) is not None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CatalogError(
            f"the catalog's folder `{folder}` cannot be created: {os_error_reason(error)}",
            "create it, or name another file as the catalog's `uri`",
        ) from error


def spark_settings(environment: Environment) -> SparkSettings:
    """How Spark is started for it.

    :raises UsageError: it names a Spark Connect server, which has no JVM here.
    """
    spark = environment.spark
    if spark.remote is not None:
        raise UsageError(
            f"environment `{environment.name}` has a Spark Connect server, and no Spark with a JVM",
            "write `spark: {master: …}`; or call icemigrate's Python API where Spark runs, with its session",
        )
    name = environment.catalog.name
    prefix = f"spark.sql.catalog.{name}"
    conf = spark_conf(environment)
    inner = {k.removeprefix(f"{prefix}."): v for k, v in conf.items() if k.startswith(f"{prefix}.")}
    rest = {k: v for k, v in conf.items() if k != prefix and not k.startswith(f"{prefix}.")}
    settings = SparkSettings(catalog_name=name, catalog_conf=inner, conf=rest, jars_dir=spark.jars)
    return settings if spark.master is None else dataclasses.replace(settings, master=spark.master)


@dataclass(slots=True)
class LazySpark:
    """The engine of an opened environment, whose Spark starts on first access.

    :param session: a running one; without it one is started.
    :param on_start: called right before that.
    """

    environment_session: EnvironmentSession
    session: SparkSession | None
    on_start: Callable[[], None]
    engine: SparkEngine | None = None

    def __call__(self, on_event: Callable[[Event], None] = lambda event: None) -> SparkEngine:
        """The engine, the same one every time.

        :param on_event: takes the start of Spark, where this call starts it; another session of one that
            runs takes no time.
        """
        if self.engine is None:
            started: list[float] = []
            was_running = _is_running()

            def note_start() -> None:
                self.on_start()
                started.append(time.monotonic())

            self.engine = engine_of(self.environment_session, self.session, note_start)
            for begin in started if not was_running else ():
                on_event(SparkStarted(time.monotonic() - begin))
        return self.engine
