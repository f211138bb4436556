"""The engine that is Spark: statements by Spark SQL, the rest by Iceberg's Java API in the same session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from icemigrate.engine import append, evidence, landing, metadata_commit, rewriting
from icemigrate.engine.conflicts import until_first
from icemigrate.engine.explain import causes, explained, is_commit_conflict
from icemigrate.engine.guard import Guard
from icemigrate.engine.java_catalog import JavaCatalog
from icemigrate.engine.pinned_settings import pin, pinned
from icemigrate.engine.port import Marker, OnProgress
from icemigrate.engine.written import require_written, snapshots_of
from icemigrate.frozen import replace
from icemigrate.model.evidence import Evidence, Questions
from icemigrate.model.metadata import table_from_json
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.sql.names import namespace_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property"
"""What stands before a key of a snapshot's summary, as a setting of the session."""
_LONGEST_PAUSE_S = 0.1

_EXISTS = "AlreadyExistsException"


class SparkEngine:
    """Changes tables through a Spark session; see :class:`~icemigrate.engine.port.Engine`.

    :param session: one that has a JVM of its own and Iceberg's SQL extensions.
    :param catalog_name: the catalog's name in Spark SQL.
    :param is_own: whether the session is icemigrate's own, so that its settings are pinned for good.
    """

    def __init__(self, session: SparkSession, catalog_name: str, *, is_own: bool = False) -> None:
        self.java = JavaCatalog(session, catalog_name)
        self.guard: Guard | None = None
        self._session = session
        self._catalog_name = catalog_name
        self.is_own = is_own
        if is_own:
            pin(session)

    def pinned(self) -> AbstractContextManager[None]:
        """A block in which no setting of the session changes what a statement does."""
        return nullcontext() if self.is_own else pinned(self._session)

    def close(self) -> None:
        """Let go of the catalog's connections; neither the engine nor its session's catalog works then."""
        with explained():
            self.java.close()

    @property
    def session(self) -> SparkSession:
        """The session that it works in."""
        return self._session

    @property
    def catalog_name(self) -> str:
        """The catalog's name in Spark SQL."""
        return self._catalog_name

    @property
    def takes_many_columns(self) -> bool:
        """Spark 4.0 and later."""
        return int(self._session.version.partition(".")[0]) >= 4

    def sql(self, text: str) -> None:
        """Run one statement; again, where another writer's commit came between its reading and its own."""
        # Iceberg tries appends again by itself, but no change of a schema.
        with explained(), self.pinned():
            until_first(lambda: self._run(text))

    def _run(self, text: str) -> None:
        self._require()
        self._session.sql(text)

    def _require(self) -> None:
        if self.guard is not None:
            self.guard.require()

    @contextmanager
    def guarded(self, guard: Guard) -> Iterator[None]:
        """A block in which every change has to pass the guard."""
        before, self.guard = self.guard, guard
        try:
            yield
        finally:
            self.guard = before

    def fence(self, name: TableName, version: str) -> bool:
        """Move a table, so that every commit to it that was begun before is refused."""
        with explained():
            is_fenced = until_first(lambda: landing.fence(self, name, version), _LONGEST_PAUSE_S)
            if is_fenced:
                self.java.refresh(name)
            return is_fenced

    def set_owner(self, name: TableName, owner: str | None) -> None:
        """Claim a table for a project, or give it free."""
        with explained():
            until_first(lambda: landing.set_owner(self, name, owner), _LONGEST_PAUSE_S)
            self.java.refresh(name)

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        """Run one statement that writes rows to a branch, and see that they are there."""
        before = self._snapshot_ids(name)
        self._write(text, summary)
        metadata = self.metadata_json(name)
        if metadata is not None:
            require_written(metadata, name, branch, before, summary)

    def _snapshot_ids(self, name: TableName) -> frozenset[int]:
        metadata = self.metadata_json(name)
        return frozenset() if metadata is None else frozenset(snapshots_of(metadata))

    def _write(self, text: str, summary: Mapping[str, str]) -> None:
        keys = {f"{_SNAPSHOT_PROPERTY}.{key}": value for key, value in summary.items()}
        try:
            for key, value in keys.items():
                self._session.conf.set(key, value)
            self.sql(text)
        finally:
            for key in keys:
                self._session.conf.unset(key)

    def rewrite_old_files(
        self, name: TableName, call: str, is_sorted: bool, on_progress: OnProgress = lambda share: None
    ) -> int:
        """See :mod:`icemigrate.engine.rewriting`."""
        return rewriting.rewrite_old_files(self.java, name, lambda: self.sql(call), is_sorted, on_progress)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""
        with explained(), self.pinned():
            return [tuple(row) for row in self._session.sql(text).collect()]

    def evidence(self, name: TableName, questions: Questions) -> Evidence:
        """What a table's manifests say."""
        return evidence.gather(self.java, self.ask, name, questions)

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Make a namespace, unless it is there."""
        text = f"CREATE NAMESPACE IF NOT EXISTS {namespace_sql(self._catalog_name, namespace)}"
        with explained(), self.pinned():
            try:
                self._session.sql(text)
            except Exception as error:  # known by its Java cause alone
                # Of several who make it at once, some are told that it exists, or of a database's own key.
                if not any(_EXISTS in cause.kind for cause in causes(error)):
                    self._session.sql(text)

    def drop_namespace(self, namespace: tuple[str, ...]) -> bool:
        """Drop a namespace in which nothing is; :returns: whether it is gone."""
        name = namespace_sql(self._catalog_name, namespace)
        # Not every catalog refuses to drop one that holds something.
        if self.ask(f"SHOW TABLES IN {name}") or self.ask(f"SHOW NAMESPACES IN {name}"):
            return False
        self.sql(f"DROP NAMESPACE IF EXISTS {name}")
        return True

    def table(self, name: TableName) -> Table | None:
        """The table as it is now; ``None`` where there is none."""
        metadata = self.metadata_json(name)
        return None if metadata is None else table_from_json(metadata, name)

    def metadata_json(self, name: TableName) -> Mapping[str, Any] | None:
        """The table's metadata as it is now."""
        with explained():
            table = self.java.find(name)
            return None if table is None else self.java.read(table.operations().current())

    def commit(self, name: TableName, fold: Callable[[Table], Table], holds_rows: bool = False) -> Table:
        """Fold a change over the table as it is, in one commit."""
        with explained():
            return until_first(lambda: self._commit(name, fold, holds_rows), _LONGEST_PAUSE_S)

    def _commit(self, name: TableName, fold: Callable[[Table], Table], holds_rows: bool) -> Table:
        base = landing.open_base(self, name)
        if landing.land(self, base, fold(base.table), None, holds_rows) is None:
            return base.table
        return self.java.seen(name)

    def create(self, table: Table) -> Table:
        """Make a table under exactly the field ids given."""
        with explained():
            schema = metadata_commit.java_schema(self.java.iceberg, table.schema)
            builder = self.java.catalog.buildTable(self.java.identifier(table.name), schema)
            builder.withPartitionSpec(metadata_commit.java_spec(self.java.iceberg, schema, table.spec))
            builder.withSortOrder(metadata_commit.java_order(self.java.iceberg, schema, table.sort_order))
            builder.withProperties({**table.properties, "format-version": str(table.format_version)})
            if table.location is not None:
                builder.withLocation(table.location)
            self._require()
            builder.create()
            made = self.java.seen(table.name)
        if _ids(made) == _ids(table):
            return made
        # Iceberg numbers a new table's fields afresh; a table that is made again keeps those it had.
        return self.commit(
            table.name,
            lambda now: replace(
                now,
                schema=table.schema,
                spec=table.spec,
                sort_order=table.sort_order,
                last_column_id=max(now.last_column_id, table.last_column_id),
            ),
        )

    def rename(self, name: TableName, new: TableName) -> None:
        """Give a table another name, by the catalog itself."""
        self.create_namespace(new.namespace)
        with explained():
            self._require()
            self.java.catalog.renameTable(self.java.identifier(name), self.java.identifier(new))

    def mark(self, name: TableName, marker: Marker) -> None:
        """Put the marker and its tags on a table."""
        with explained():
            # What Iceberg tries again by itself is not enough beside a writer that never stops.
            until_first(lambda: self._mark(name, marker))
            self.java.refresh(name)

    def _mark(self, name: TableName, marker: Marker) -> None:
        base = landing.open_base(self, name)
        landing.land(self, base, base.table, marker)

    def append(
        self,
        name: TableName,
        rows: Sequence[Mapping[str, Any]],
        properties: Mapping[str, str],
        remove: Sequence[str],
        *,
        expected_head: int | None,
        summary: Mapping[str, str],
    ) -> int:
        """Move the head of main by compare-and-swap."""
        with explained():
            table = self.java.table(name)
            base, built, head = append.swap_head(
                self.java.jvm, table, rows, properties, remove, expected_head, summary
            )
            try:
                table.operations().commit(base, built)
            except Exception as error:  # known by its Java cause alone
                # A commit that is reported as failed may have succeeded; what is there now tells.
                if self.java.table(name).operations().current().snapshot(head) is None:
                    if is_commit_conflict(error):
                        raise append.head_moved(table) from error
                    raise
            self.java.catalog.invalidateTable(self.java.identifier(name))
            return head

    def metadata_location(self, name: TableName) -> str | None:
        """Where the table's metadata file is now."""
        with explained():
            table = self.java.find(name)
            return None if table is None else str(table.operations().current().metadataFileLocation())


def _ids(table: Table) -> list[tuple[tuple[str, ...], int]]:
    return [(path, field.id) for path, field in table.schema.walk()]
