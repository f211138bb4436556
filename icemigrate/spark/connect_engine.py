"""Statements on a Spark Connect server, for the engine that commits metadata in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from icemigrate.errors import EngineError, Stopped
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import OldSpecFiles, equivalent_spec_ids
from icemigrate.spark.connect_session import connection_errors
from icemigrate.spark.engine_port import OnProgress, no_progress
from icemigrate.spark.java_errors import retry_on_conflict
from icemigrate.spark.row_branches import require_written, snapshots_of
from icemigrate.spark.session_settings import (
    SNAPSHOT_PROPERTY,
    TIME_ZONE,
    changed_settings,
    pin_settings,
)
from icemigrate.spark_sql.identifiers import table_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.commit_fence import Fence
    from icemigrate.spark.spark_engine import SparkEngine

_ROUNDS = 5
"""How often files are rewritten while other clients write old ones."""


class CatalogMetadata(Protocol):
    """The environment's catalog, as Python reads it."""

    def metadata_json(self, name: TableName) -> Mapping[str, Any] | None:
        """The table's current metadata; ``None`` where there is no such table."""
        ...

    def metadata_location(self, name: TableName) -> str | None:
        """The location of the table's current metadata file; ``None`` where there is no such table."""
        ...


class ConnectEngine:
    """See :class:`~icemigrate.spark.statement_engine.StatementEngine`.

    :param server: host and port, for messages.
    :param catalog: what Python reads and commits to; the server's catalog of this name must be the same.
    :param history: the history table, by which the two catalogs are compared.
    :param is_own: whether the session is icemigrate's own, so that its settings are pinned permanently.
    """

    jvm_engine: SparkEngine | None = None

    def __init__(
        self,
        session: SparkSession,
        server: str,
        catalog_name: str,
        catalog: CatalogMetadata,
        history: TableName,
        *,
        is_own: bool,
    ) -> None:
        self.guard: Fence | None = None
        self.session = session
        self._server, self._catalog_name, self._catalog = server, catalog_name, catalog
        self._history, self._is_own = history, is_own
        self._stale: dict[TableName, None] = {}
        self._is_verified = False
        if is_own:
            with connection_errors(server):
                pin_settings(session)

    def sql(self, text: str) -> None:
        """Run one statement; again, if another writer committed between its read and its own commit."""
        self._prepare()

        def attempt() -> None:
            if self.guard is not None:
                self.guard.require()
            self.session.sql(text)

        with self._statement():
            retry_on_conflict(attempt)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""
        self._prepare()
        with self._statement():
            return [tuple(row) for row in self.session.sql(text).collect()]

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        """Run one statement that writes rows to a branch, and verify that they are there."""
        before = frozenset(snapshots_of(self._catalog.metadata_json(name) or {}))
        self.refresh(name)
        keys = {f"{SNAPSHOT_PROPERTY}.{key}": value for key, value in summary.items()}
        with self._settings(keys):
            self.sql(text)
        metadata = self._catalog.metadata_json(name)
        if metadata is not None:
            require_written(metadata, name, branch, before, summary)

    def rewrite_old_files(
        self, name: TableName, call: str, is_sorted: bool, on_progress: OnProgress = no_progress
    ) -> int:
        """Rewrite all files where some have an older partition spec: no call rewrites these alone."""
        for _ in range(_ROUNDS):
            share = self._old_files(name)
            if share.files == 0:
                return 0
            on_progress(share)
            self.refresh(name)
            self.sql(call)
        return self._old_files(name).files

    def _old_files(self, name: TableName) -> OldSpecFiles:
        metadata = self._catalog.metadata_json(name)
        if metadata is None:
            raise EngineError(f"table `{name}` no longer exists")
        table = table_from_json(metadata, name)
        current = equivalent_spec_ids(table, table.spec)
        self.refresh(name)
        files = f"{table_sql(self._catalog_name, name)}.data_files"
        counts = dict(self.ask(f"SELECT spec_id, count(*) FROM {files} GROUP BY spec_id"))
        old = sum(count for spec, count in counts.items() if spec not in current)
        return OldSpecFiles(old, sum(counts.values()))

    @contextmanager
    def in_time_zone(self, zone: str) -> Iterator[None]:
        """A block in which times without a zone are in this one."""
        with self._settings({TIME_ZONE: zone}):
            yield

    def refresh(self, name: TableName) -> None:
        """Refresh the server's cached table before the next statement.

        The history is left out: no statement reads it, and a heartbeat commits to it from another thread.
        """
        if name != self._history:
            self._stale[name] = None

    forget = refresh

    def close(self) -> None:
        """Close an own session; leave no stale table in the session of a caller."""
        if self._is_own:
            self.session.stop()
        else:
            self._refresh_tables()

    def _prepare(self) -> None:
        self.require_same_catalog()
        self._refresh_tables()

    def _refresh_tables(self) -> None:
        names, self._stale = self._stale, {}
        for name in names:
            self._refresh_table(name)

    def _refresh_table(self, name: TableName) -> None:
        from pyspark.errors import AnalysisException

        # A table that was renamed, or that the statement creates, is not there.
        with self._statement(), suppress(AnalysisException):
            self.session.sql(f"REFRESH TABLE {table_sql(self._catalog_name, name)}")

    def require_same_catalog(self) -> None:
        """Require that the server's catalog is the environment's: both read one history.

        Each must know the current metadata file of the other, because both may be read while the lock is
        renewed.  Before the first migration there is no history, and nothing that could be written.

        :raises EngineError: they are two catalogs.
        """
        first = None if self._is_verified else self._catalog.metadata_location(self._history)
        if first is None:
            if self.guard is not None and not self._is_verified:
                raise EngineError(f"table `{self._history}` no longer exists")
            return
        files = self._server_files()
        metadata = self._catalog.metadata_json(self._history) or {}
        known = {entry["metadata-file"] for entry in metadata.get("metadata-log") or ()}
        known |= {first, self._catalog.metadata_location(self._history)}
        if first not in files or files[-1] not in known:
            raise EngineError(
                f"catalog `{self._catalog_name}` of the Spark Connect server {self._server} is another one "
                f"than that of the environment: it has another table `{self._history}`",
                _SAME_CATALOG_HINT.format(name=self._catalog_name),
            )
        self._is_verified = True

    def _server_files(self) -> list[str]:
        """The metadata files of the history, the oldest first, as the server reads it."""
        self._refresh_table(self._history)
        log = f"{table_sql(self._catalog_name, self._history)}.metadata_log_entries"
        text = f"SELECT file FROM {log} ORDER BY timestamp, latest_sequence_number"
        try:
            with self._statement():
                return [row[0] for row in self.session.sql(text).collect()]
        except EngineError as error:
            if "TABLE_OR_VIEW_NOT_FOUND" not in error.message:
                raise
            raise EngineError(
                f"catalog `{self._catalog_name}` of the Spark Connect server {self._server} is another one "
                f"than that of the environment: it has no table `{self._history}`",
                _SAME_CATALOG_HINT.format(name=self._catalog_name),
            ) from error

    @contextmanager
    def _settings(self, values: Mapping[str, str]) -> Iterator[None]:
        with connection_errors(self._server), changed_settings(self.session, values):
            yield

    @contextmanager
    def _statement(self) -> Iterator[None]:
        """A block that runs one statement; the server ends it where Ctrl-C ends the block."""
        tag = f"icemigrate-{uuid4().hex}"
        pinned = nullcontext() if self._is_own else changed_settings(self.session)
        with connection_errors(self._server), pinned:
            self.session.addTag(tag)
            try:
                yield
            except (KeyboardInterrupt, Stopped):
                # Otherwise the server would go on writing rows.
                with suppress(Exception):
                    self.session.interruptTag(tag)
                raise
            finally:
                self.session.removeTag(tag)


_SAME_CATALOG_HINT = (
    "set spark.sql.catalog.{name}.* of the server to the catalog of the project file, because Python commits "
    "there what the server reads"
)
