"""The engine that is Spark: statements by Spark SQL, the rest by Iceberg's Java API in the same session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from icemigrate.frozen import replace
from icemigrate.iceberg.file_evidence_values import Evidence, EvidenceQuery
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Ref, Table
from icemigrate.iceberg.views import View, view_from_json
from icemigrate.spark import append_snapshot, commit, file_evidence, metadata_commit, rewrite_files
from icemigrate.spark.commit_fence import Fence
from icemigrate.spark.engine_port import Marker, OnProgress, no_progress
from icemigrate.spark.java_catalog import JavaCatalog
from icemigrate.spark.java_errors import (
    cause_chain,
    convert_java_errors,
    is_commit_conflict,
    retry_on_conflict,
)
from icemigrate.spark.job_progress import job_activity
from icemigrate.spark.row_branches import require_written, snapshots_of
from icemigrate.spark.session_settings import SNAPSHOT_PROPERTY, TIME_ZONE, changed_settings, pin_settings
from icemigrate.spark_sql.identifiers import namespace_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.table_copies import TableCopies

_LONGEST_PAUSE_S = 0.1

_EXISTS = "AlreadyExistsException"


class SparkEngine:
    """Changes tables through a Spark session; see :class:`~icemigrate.spark.engine_port.Engine`.

    :param session: a session with a JVM of its own and Iceberg's SQL extensions.
    :param catalog_name: the catalog's name in Spark SQL.
    :param is_own: whether the session is icemigrate's own, so that its settings are pinned permanently.
    """

    runs_sql = True

    def __init__(self, session: SparkSession, catalog_name: str, *, is_own: bool = False) -> None:
        self.java = JavaCatalog(session, catalog_name)
        self.guard: Fence | None = None
        self._session = session
        self._catalog_name = catalog_name
        self.is_own = is_own
        if is_own:
            pin_settings(session)

    @property
    def commits(self) -> commit.SparkCommits:
        """Its commits."""
        return commit.SparkCommits(self)

    @property
    def transactions(self) -> None:
        """None: Iceberg's Java library has no transaction of several tables."""

    @property
    def creations(self) -> None:
        """None: each statement creates one table."""

    def in_jvm(self, purpose: str) -> SparkEngine:
        """Itself."""
        return self

    @property
    def jvm_engine(self) -> SparkEngine:
        """Itself."""
        return self

    def refresh(self, name: TableName) -> None:
        """Forget what the session keeps of a table."""
        self.java.refresh(name)

    def forget(self, name: TableName) -> None:
        """Forget what the session keeps of a name that a table had."""
        self.java.forget(name)

    @property
    def step_engine(self) -> SparkEngine:
        """This one."""
        return self

    def table_copies(self) -> TableCopies:
        """Copies of tables on which statements run."""
        from icemigrate.spark.table_copies import TableCopies

        return TableCopies(self)

    def pinned(self) -> AbstractContextManager[None]:
        """A block in which no setting of the session changes the effect of a statement."""
        return nullcontext() if self.is_own else changed_settings(self._session)

    @contextmanager
    def in_time_zone(self, zone: str) -> Iterator[None]:
        """A block in which times without a zone are in this one.

        :raises EngineError: Spark does not know the zone.
        """
        with convert_java_errors(), changed_settings(self._session, {TIME_ZONE: zone}):
            yield

    def close(self) -> None:
        """Close the catalog's connections; neither the engine nor its session's catalog works after that."""
        with convert_java_errors():
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
        """Run one statement; again, if another writer committed between its read and its own commit."""
        # Iceberg itself retries appends, but no change of a schema.
        with convert_java_errors(), self.pinned():
            retry_on_conflict(lambda: self._run(text))

    def _run(self, text: str) -> None:
        self._require()
        self._session.sql(text)

    def _require(self) -> None:
        if self.guard is not None:
            self.guard.require()

    @contextmanager
    def guarded(self, guard: Fence) -> Iterator[None]:
        """A block in which every change has to pass the guard."""
        before, self.guard = self.guard, guard
        try:
            yield
        finally:
            self.guard = before

    def fence(self, name: TableName, version: str) -> bool:
        """Move a table, so that every commit to it that began earlier is refused."""
        with convert_java_errors():
            is_fenced = retry_on_conflict(lambda: commit.fence_table(self, name, version), _LONGEST_PAUSE_S)
            if is_fenced:
                self.java.refresh(name)
            return is_fenced

    def set_owner(self, name: TableName, owner: str | None) -> None:
        """Claim a table for a project, or give it free."""
        with convert_java_errors():
            retry_on_conflict(lambda: commit.set_owner(self, name, owner), _LONGEST_PAUSE_S)
            self.java.refresh(name)

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        """Run one statement that writes rows to a branch, and verify that they are there."""
        before = self._snapshot_ids(name)
        with job_activity(self._session.sparkContext, f"Writing rows of {name}"):
            self._write(text, summary)
        metadata = self.metadata_json(name)
        if metadata is not None:
            require_written(metadata, name, branch, before, summary)

    def _snapshot_ids(self, name: TableName) -> frozenset[int]:
        metadata = self.metadata_json(name)
        return frozenset() if metadata is None else frozenset(snapshots_of(metadata))

    def _write(self, text: str, summary: Mapping[str, str]) -> None:
        keys = {f"{SNAPSHOT_PROPERTY}.{key}": value for key, value in summary.items()}
        with convert_java_errors(), changed_settings(self._session, keys):
            self.sql(text)

    def rewrite_old_files(
        self, name: TableName, call: str, is_sorted: bool, on_progress: OnProgress = no_progress
    ) -> int:
        """See :mod:`icemigrate.spark.rewrite_files`."""
        with job_activity(self._session.sparkContext, f"Rewriting files of {name}"):
            return rewrite_files.rewrite_old_files(
                self.java, name, lambda: self.sql(call), is_sorted, on_progress
            )

    def ask(self, text: str, doing: str = "Reading rows") -> list[tuple[Any, ...]]:
        """The rows that a query gives.

        :param doing: what a user is shown meanwhile.
        """
        with (
            convert_java_errors(),
            self.pinned(),
            job_activity(self._session.sparkContext, doing),
        ):
            return [tuple(row) for row in self._session.sql(text).collect()]

    def evidence(self, name: TableName, questions: EvidenceQuery) -> Evidence:
        """The answers to questions about a table's manifests."""
        return file_evidence.gather_evidence(self.java, self.ask, name, questions)

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a namespace, unless it exists."""
        text = f"CREATE NAMESPACE IF NOT EXISTS {namespace_sql(self._catalog_name, namespace)}"
        with convert_java_errors(), self.pinned():
            try:
                self._session.sql(text)
            except Exception as error:  # identified by its Java cause
                # When several processes create it at once, some get an error that it exists, or one of a
                # database's key.
                if not any(_EXISTS in cause.kind for cause in cause_chain(error)):
                    self._session.sql(text)

    def drop_namespace(self, namespace: tuple[str, ...]) -> bool:
        """Drop an empty namespace; :returns: whether it is gone."""
        name = namespace_sql(self._catalog_name, namespace)
        # Not every catalog refuses to drop a namespace with content.
        if self.ask(f"SHOW TABLES IN {name}") or self.ask(f"SHOW NAMESPACES IN {name}"):
            return False
        self.sql(f"DROP NAMESPACE IF EXISTS {name}")
        return True

    def table(self, name: TableName) -> Table | None:
        """The current table; ``None`` where there is none."""
        metadata = self.metadata_json(name)
        return None if metadata is None else table_from_json(metadata, name)

    def view(self, name: TableName) -> View | None:
        """The current view; ``None`` where there is none, and where the catalog has no views."""
        with convert_java_errors():
            json = self.java.view_json(name)
            return None if json is None else view_from_json(json, name)

    def metadata_json(self, name: TableName) -> Mapping[str, Any] | None:
        """The table's metadata as it is now."""
        with convert_java_errors():
            table = self.java.find(name)
            return None if table is None else self.java.read(table.operations().current())

    def commit(self, name: TableName, update: Callable[[Table], Table], holds_rows: bool = False) -> Table:
        """Apply a change to the current table, in one commit."""
        with convert_java_errors():
            return retry_on_conflict(lambda: self._commit(name, update, holds_rows), _LONGEST_PAUSE_S)

    def _commit(self, name: TableName, update: Callable[[Table], Table], holds_rows: bool) -> Table:
        base = commit.open_commit_base(self, name)
        if commit.commit_changes(self, base, update(base.table), None, holds_rows) is None:
            return base.table
        return self.java.seen(name)

    def create_branch(self, name: TableName, branch: str) -> None:
        """Create a branch at the table's current snapshot, or move it there.

        Spark's own statement would load the table after the lock is checked, so no fence could refuse it.
        """
        ref = Ref("branch", CURRENT_SNAPSHOT)
        self.commit(name, lambda table: replace(table, refs={**table.refs, branch: ref}))

    def create(self, table: Table) -> Table:
        """Create a table with exactly these field ids."""
        with convert_java_errors():
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
        # Iceberg numbers a new table's fields afresh; a table that is created again keeps its old ids.
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
        with convert_java_errors():
            self._require()
            self.java.catalog.renameTable(self.java.identifier(name), self.java.identifier(new))

    def mark(self, name: TableName, marker: Marker) -> None:
        """Put the marker and its tags on a table."""
        with convert_java_errors():
            # Iceberg's own retries are not enough beside a writer that never stops.
            retry_on_conflict(lambda: self._mark(name, marker))
            self.java.refresh(name)

    def _mark(self, name: TableName, marker: Marker) -> None:
        base = commit.open_commit_base(self, name)
        commit.commit_changes(self, base, base.table, marker)

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
        with convert_java_errors():
            table = self.java.table(name)
            base, built, head = append_snapshot.build_append_commit(
                self.java.jvm, table, rows, properties, remove, expected_head, summary
            )
            try:
                table.operations().commit(base, built)
            except Exception as error:  # identified by its Java cause
                # A commit that is reported as failed may have succeeded; the current table shows it.
                if self.java.table(name).operations().current().snapshot(head) is None:
                    if is_commit_conflict(error):
                        raise append_snapshot.head_moved(table.name()) from error
                    raise
            append_snapshot.delete_expired(table, base, built)
            self.java.forget(name)
            return head

    def metadata_location(self, name: TableName) -> str | None:
        """Where the table's metadata file is now."""
        with convert_java_errors():
            table = self.java.find(name)
            return None if table is None else str(table.operations().current().metadataFileLocation())


def _ids(table: Table) -> list[tuple[tuple[str, ...], int]]:
    return [(path, field.id) for path, field in table.schema.walk()]
