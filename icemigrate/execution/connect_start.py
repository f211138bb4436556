"""The engine of an environment with a Spark Connect server: Python commits metadata, the server runs SQL.

Python and the server reach the same catalog, each with its own settings
(:meth:`~icemigrate.spark.connect_engine.ConnectEngine` compares them).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from icemigrate.errors import EngineError, UsageError, extra_hint
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import Frozen
from icemigrate.project import Environment
from icemigrate.project.project_values import Secret
from icemigrate.spark.connect_session import ConnectSettings, is_connect_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.metadata_engine.engine import MetadataEngine
    from icemigrate.metadata_engine.table_store import TableStore
    from icemigrate.spark.connect_engine import ConnectEngine

METADATA_LIBRARIES = ("fastavro", "pyarrow")
"""What commits in Python need; the extra ``metadata`` has them."""


class ConnectObstacle(Frozen):
    """Why no migration can be applied through Spark Connect.

    :param reason: a clause for a message.
    :param hint: what to do.
    """

    reason: str
    hint: str


def uses_connect(environment: Environment, spark: SparkSession | None) -> bool:
    """Whether statements run on a Spark Connect server.

    :param spark: the session of a caller, which comes before the environment's settings.
    """
    return environment.spark.remote is not None if spark is None else is_connect_session(spark)


def connect_obstacle(session: EnvironmentSession) -> ConnectObstacle | None:
    """Why Spark Connect cannot apply migrations in an environment; ``None`` where it can."""
    if session.environment.apply_with == "spark":
        return ConnectObstacle(
            "`apply_with: spark` commits metadata with Spark, and Spark Connect has no way to do so",
            "use `--apply-with auto`: Python commits metadata, and the server runs statements on rows",
        )
    if missing := missing_metadata_libraries():
        return ConnectObstacle(
            f"Python commits metadata where Spark runs behind Spark Connect, and needs {', '.join(missing)}",
            extra_hint("metadata"),
        )
    if open_store(session) is None:
        kind = session.catalog.settings.type
        return ConnectObstacle(
            f"only Iceberg's Java library commits metadata to catalogs of type `{kind}`, and Spark Connect "
            "does not reach it",
            "write `master` instead of `remote` in the environment; or call icemigrate's Python API where "
            "Spark runs, with its session",
        )
    return None


def open_connect_engine(
    session: EnvironmentSession, spark: SparkSession | None, on_start: Callable[[], None] = lambda: None
) -> MetadataEngine:
    """The engine that commits in Python, and connects to the server with the first statement.

    :param spark: a session of Spark Connect; without it one is opened.
    :param on_start: called right before one is opened.
    :raises UsageError: there is a :func:`connect_obstacle`.
    """
    if (obstacle := connect_obstacle(session)) is not None:
        raise UsageError(obstacle.reason, obstacle.hint)
    store = open_store(session)
    assert store is not None, "else there is an obstacle"
    from icemigrate.metadata_engine.engine import MetadataEngine

    uses_spark = session.environment.apply_with != "metadata"
    engine = MetadataEngine(
        store,
        session.catalog,
        (lambda: _connect(session, engine, spark, on_start)) if uses_spark else None,
    )
    session.on_close(engine.close)
    if spark is not None and uses_spark:
        engine.follow(_connect(session, engine, spark, on_start))
    return engine


def _connect(
    session: EnvironmentSession,
    engine: MetadataEngine,
    spark: SparkSession | None,
    on_start: Callable[[], None],
) -> ConnectEngine:
    from icemigrate.spark.connect_engine import ConnectEngine
    from icemigrate.spark.connect_session import open_connect_session, quiet_loggers, require_catalog

    name = session.environment.catalog.name
    if spark is None:
        on_start()
        settings = connect_settings(session.environment)
        opened, server = open_connect_session(settings), settings.server
    else:
        quiet_loggers()
        opened, server = spark, _server_of(spark)
        require_catalog(spark, name, server)
    made = ConnectEngine(opened, server, name, engine, session.history_name, is_own=spark is None)

    def close() -> None:
        with suppress(EngineError):  # a server that is lost has closed the session
            made.close()

    session.on_close(close)
    made.require_same_catalog()
    return made


def connect_settings(environment: Environment) -> ConnectSettings:
    """The settings of an environment's session on its server."""
    spark = environment.spark
    assert spark.remote is not None, "the environment has a server"
    conf = {key: v.reveal() if isinstance(v, Secret) else v for key, v in spark.conf.items()}
    token = None if spark.token is None else spark.token.reveal()
    return ConnectSettings(spark.remote, environment.catalog.name, token, conf)


def _server_of(spark: SparkSession) -> str:
    """Host and port of a caller's session."""
    channel = getattr(getattr(spark, "client", None), "_builder", None)
    return str(getattr(channel, "endpoint", "of the given session"))


def open_store(session: EnvironmentSession) -> TableStore | None:
    """The store of the environment's tables; ``None`` for other catalogs, and where a library is missing."""
    if missing_metadata_libraries():
        return None
    from icemigrate.metadata_engine.open_store import open_table_store

    return open_table_store(session.catalog.settings)


def missing_metadata_libraries() -> list[str]:
    """The libraries for commits in Python that are not installed."""
    return [library for library in METADATA_LIBRARIES if find_spec(library) is None]
