"""The engine of an environment: Spark's, or commits of metadata in Python (``apply_with``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from icemigrate.catalog.metadata_files import local_path
from icemigrate.errors import IcemigrateError, MissingExtra, UsageError, extra_hint
from icemigrate.events import Event
from icemigrate.execution.connect_start import (
    missing_metadata_libraries,
    open_connect_engine,
    open_store,
    uses_connect,
)
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.execution.spark_start import LazySpark, engine_of, has_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.metadata_engine.engine import MetadataEngine
    from icemigrate.metadata_engine.table_store import TableStore
    from icemigrate.spark.commit_ports import CommittingEngine
    from icemigrate.spark.engine_port import Engine
    from icemigrate.spark.spark_engine import SparkEngine


@dataclass(slots=True)
class LazyEngine:
    """The engine of an opened environment, made on first access.

    :param session: a running Spark session; without it one is started where Spark is needed.
    :param on_start: called right before that.
    :param is_undo: whether it is for an undo or a baseline, which Python commits unless ``apply_with`` says
        otherwise, or a session is given.
    """

    environment_session: EnvironmentSession
    session: SparkSession | None
    on_start: Callable[[], None]
    is_undo: bool = False
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
        if uses_connect(session.environment, self.session):
            return open_connect_engine(session, self.session, self.on_start)
        spark = LazySpark(session, self.session, self.on_start)
        if apply_with is None and not self.is_undo:
            return self._with_statements(spark, on_event) or spark(on_event)
        if apply_with != "metadata":
            return _python_engine(session, self.session, lambda: spark(on_event)) or spark(on_event)
        if missing := missing_metadata_libraries():
            raise MissingExtra(f"`apply_with: metadata` needs {', '.join(missing)}", extra_hint("metadata"))
        found = _python_engine(session, self.session)
        if found is None:
            raise UsageError(
                f"`apply_with: metadata` does not support catalogs of type `{session.catalog.settings.type}`",
                "use `--apply-with spark` for this environment",
            )
        return found

    def _with_statements(
        self, spark: LazySpark, on_event: Callable[[Event], None]
    ) -> CommittingEngine | None:
        """Spark for the statements, on copies of the tables, and Python for their commits.

        ``None`` where Python does not commit, and where statements run on the tables themselves.
        """
        session = self.environment_session
        if session.environment.publish != "atomic":
            return None
        found = _python_engine(session, self.session, lambda: spark(on_event), runs_statements=True)
        if found is not None:
            found.in_spark("`apply`")  # it starts before the lock is taken
        return found


def maintenance_engine(
    session: EnvironmentSession, spark: SparkSession | None, on_start: Callable[[], None]
) -> CommittingEngine:
    """The engine of ``maintain`` and ``reset``: Python commits what it can, and Spark starts for the rest.

    Whatever ``apply_with`` is, Spark expires snapshots and deletes rows and files.

    :param on_start: called before Spark is started.
    """
    if uses_connect(session.environment, spark):
        return open_connect_engine(session, spark, on_start)
    start = LazySpark(session, spark, on_start)
    return _python_engine(session, spark, start) or start()


def history_engine(
    session: EnvironmentSession, spark: SparkSession | None, otherwise: Callable[[], Engine]
) -> Engine:
    """What writes the history and its lock: commits in Python, also where Spark changes the tables.

    :param spark: a running session; where nothing else is set, it writes the history, because its catalog may
        be another one than that of the project file.
    :param otherwise: the engine where Python does not write it.
    """
    if uses_connect(session.environment, spark):
        return open_connect_engine(session, spark)
    return _python_engine(session, spark) or otherwise()


def history_writer(
    session: EnvironmentSession, spark: SparkSession | None, engine: CommittingEngine
) -> Engine:
    """What writes the history beside an engine: the engine itself, if it commits in Python.

    It knows the history that it wrote; a second one would read it again.
    """
    return history_engine(session, spark, lambda: engine) if engine.runs_sql else engine


def commits_in_python(session: EnvironmentSession) -> bool:
    """Whether ``apply_with: auto`` of an environment commits in Python."""
    return open_store(session) is not None


def transaction_engine_obstacle(
    session: EnvironmentSession, *, has_spark: bool, has_history: bool = True
) -> str | None:
    """Why no transaction of several tables is made in an environment, as a clause; ``None`` where one can be.

    :param has_spark: whether a Spark session with a JVM is given.
    :param has_history: whether the history exists; before that, Spark makes every change unless a setting
        says otherwise, because no file shows where Python would have to write.
    """
    environment, can = session.environment, session.catalog.capabilities
    is_default_spark = has_spark or not (has_history or _is_on_this_machine(session))
    by_spark = environment.apply_with == "spark" or (environment.apply_with is None and is_default_spark)
    if by_spark or not commits_in_python(session):
        return "Spark commits one table at a time"
    if environment.publish != "atomic":
        return f"`publish: {environment.publish}` makes one change at a time"
    if not (can.multi_table_commit and can.compare_and_swap):
        return f"catalog `{session.catalog.settings.name}` commits one table at a time"
    return None


def _python_engine(
    session: EnvironmentSession,
    running: SparkSession | None,
    start_spark: Callable[[], SparkEngine] | None = None,
    *,
    runs_statements: bool = False,
) -> MetadataEngine | None:
    """The engine that commits in Python; ``None`` where Spark makes every change.

    Without ``apply_with``, Spark makes them for a session that runs, and where Python does not reach the
    storage.

    :param runs_statements: whether Spark runs the statements of plans.
    """
    apply_with = session.environment.apply_with
    if apply_with == "spark" or (apply_with is None and running is not None):
        return None
    engine = _metadata_engine(session, running, start_spark, runs_statements=runs_statements)
    if engine is not None and apply_with is None and not _can_write(engine.store, session):
        return None
    return engine


def _can_write(store: TableStore, session: EnvironmentSession) -> bool:
    """Whether Python can write beside the history: a project may have given Spark alone the credentials.

    It writes a file and deletes it, except where the catalog and its files are on this machine.
    """
    if _is_on_this_machine(session):
        return True
    try:
        stored = store.load(session.history_name)
        if stored is None:
            return False
        from icemigrate.metadata_engine.metadata_file_names import location_of_metadata

        location = location_of_metadata(stored.json, f"icemigrate-{uuid4().hex}.probe")
        store.files.write(location, b"")
        store.files.delete(location)
    except (IcemigrateError, OSError):
        return False
    return True


def _is_on_this_machine(session: EnvironmentSession) -> bool:
    """Whether the catalog and its files are on this machine."""
    settings = session.catalog.settings
    return settings.type == "sqlite" and local_path(settings.warehouse or "") is not None


def _metadata_engine(
    session: EnvironmentSession,
    running: SparkSession | None,
    start_spark: Callable[[], SparkEngine] | None = None,
    *,
    runs_statements: bool = False,
) -> MetadataEngine | None:
    """The engine that commits in Python, closed with the session; ``None`` where the environment has none."""
    store = open_store(session)
    if store is None:
        return None
    from icemigrate.metadata_engine.engine import MetadataEngine

    engine = MetadataEngine(store, session.catalog, start_spark, runs_statements=runs_statements)
    if running is not None and has_catalog(running, session.environment.catalog.name):
        engine.follow(engine_of(session, running))
    session.on_close(engine.close)
    return engine
