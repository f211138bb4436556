"""The engine that commits table metadata in Python.

What only Spark can do (SQL, rows, data files) goes to Spark's engine, which starts when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.errors import EngineError
from icemigrate.frozen import replace
from icemigrate.iceberg.file_evidence_values import Evidence, EvidenceQuery
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import is_branch_of
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Ref, Table
from icemigrate.iceberg.table_properties import OWNER_PROPERTY
from icemigrate.iceberg.views import View
from icemigrate.metadata_engine.engine_store import EngineStore
from icemigrate.metadata_engine.history_append import append_commit, land_append
from icemigrate.metadata_engine.manifest_lists import WrittenLists
from icemigrate.metadata_engine.recent_tables import RecentTables
from icemigrate.metadata_engine.table_commit import CommitDraft, OpenTable, open_table, send
from icemigrate.metadata_engine.table_creation import creation_commit
from icemigrate.metadata_engine.table_store import CommitConflict, StoredTable, TableCommit, TableStore
from icemigrate.spark.commit_fence import Fence, owner_from_properties
from icemigrate.spark.commit_ports import require_jvm
from icemigrate.spark.engine_port import Engine, Marker, OnProgress, no_progress
from icemigrate.spark.file_evidence import gather_without_jvm
from icemigrate.spark.java_errors import convert_java_errors, retry_on_conflict
from icemigrate.spark.partition_entries import lossy_partition_fields
from icemigrate.spark.partition_restore import returning_columns
from icemigrate.spark_sql.identifiers import table_sql

if TYPE_CHECKING:
    from icemigrate.metadata_engine.creation_commits import MetadataCreations
    from icemigrate.metadata_engine.metadata_commits import MetadataCommits
    from icemigrate.spark.spark_engine import SparkEngine
    from icemigrate.spark.statement_engine import StartSpark, StatementEngine
    from icemigrate.spark.table_copies import TableCopies

T = TypeVar("T")


class MetadataEngine:
    """Changes tables by commits of their metadata; see :class:`~icemigrate.spark.engine_port.Engine`.

    :param catalog: reads the same catalog.
    :param spark: gives Spark's engine; ``None`` where Spark may not be used.
    :param runs_statements: whether Spark runs the statements of plans, on copies where a commit follows them.
    """

    runs_sql, takes_many_columns = False, True

    def __init__(
        self, store: TableStore, catalog: Catalog, spark: StartSpark | None, runs_statements: bool = False
    ) -> None:
        self.store: TableStore = EngineStore(store)
        self._runs_statements = runs_statements
        self.guard: Fence | None = None
        self._catalog, self._start_spark = catalog, spark
        self._spark: StatementEngine | None = None
        self._time_zone: str | None = None
        self._tables, self._lists = RecentTables(), WrittenLists()

    @property
    def commits(self) -> MetadataCommits:
        """Its commits."""
        from icemigrate.metadata_engine.metadata_commits import MetadataCommits

        return MetadataCommits(self)

    @property
    def transactions(self) -> MetadataCommits | None:
        """Its commits of several tables; ``None`` where the catalog commits one table at a time."""
        return self.commits if self.store.commits_together else None

    @property
    def creations(self) -> MetadataCreations | None:
        """Its creations of several tables; ``None`` where Spark or the catalog creates one at a time."""
        from icemigrate.metadata_engine.creation_commits import creations_of

        return None if self._runs_statements else creations_of(self)

    @property
    def step_engine(self) -> Engine:
        """Spark's engine, where it runs statements; else this one, which commits what they would make."""
        return require_jvm(self, "a statement in SQL") if self._runs_statements else self

    def table_copies(self) -> TableCopies | None:
        """Copies in Spark; ``None`` where no statements run."""
        return require_jvm(self, "a statement in SQL").table_copies() if self._runs_statements else None

    @property
    def catalog_name(self) -> str:
        """The catalog's name in Spark SQL."""
        return self._catalog.settings.name

    @property
    def is_rest(self) -> bool:
        """Whether its catalog is a server of Iceberg's REST protocol."""
        return self._catalog.settings.type == "rest"

    def in_jvm(self, purpose: str) -> SparkEngine | None:
        """Spark's engine with a JVM in this process; ``None`` for Spark Connect."""
        return self.in_spark(purpose).jvm_engine

    def in_spark(self, purpose: str) -> StatementEngine:
        """Spark's engine, which starts with the first call.

        :param purpose: what needs Spark, as the subject of a sentence.
        :raises EngineError: Spark may not be used.
        """
        if self._start_spark is None:
            raise EngineError(
                f"{purpose} needs Spark, and `apply_with: metadata` does not use it",
                "use `--apply-with auto`, which starts Spark where a step needs it",
            )
        if self._spark is None:
            self._spark = self._start_spark()
        self._spark.guard = self.guard
        return self._spark

    def follow(self, spark: StatementEngine) -> None:
        """Use a session that runs, and refresh its caches, which keep tables for 30 seconds by default."""
        self._spark = spark

    def _refresh(self, name: TableName) -> None:
        if self._spark is not None:
            with convert_java_errors():
                self._spark.refresh(name)

    def sql(self, text: str) -> None:
        """Run one statement in Spark."""
        with self._spark_in_zone("a statement in SQL") as spark:
            spark.sql(text)

    @contextmanager
    def in_time_zone(self, zone: str) -> Iterator[None]:
        """A block in which times without a zone are in this one, if Spark runs in it."""
        self._time_zone, before = zone, self._time_zone
        try:
            yield
        finally:
            self._time_zone = before

    @contextmanager
    def _spark_in_zone(self, purpose: str) -> Iterator[StatementEngine]:
        spark = self.in_spark(purpose)
        with nullcontext() if self._time_zone is None else spark.in_time_zone(self._time_zone):
            yield spark

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        """Run one statement that writes rows, in Spark."""
        with self._spark_in_zone(f"writing rows of table `{name}`") as spark:
            spark.write(name, branch, text, summary)

    def rewrite_old_files(
        self, name: TableName, call: str, is_sorted: bool, on_progress: OnProgress = no_progress
    ) -> int:
        """Rewrite data files, in Spark."""
        with self._spark_in_zone(f"rewriting files of table `{name}`") as spark:
            return spark.rewrite_old_files(name, call, is_sorted, on_progress)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The rows that a query gives, in Spark."""
        with self._spark_in_zone("a query of rows") as spark:
            return spark.ask(text)

    def evidence(self, name: TableName, questions: EvidenceQuery) -> Evidence:
        """The answers to questions about a table's manifests; Spark counts rows where they do not suffice."""
        if (metadata := self.metadata_json(name)) is not None:
            rows = table_sql(self.catalog_name, name)
            found = gather_without_jvm(metadata, self.store.files.read, self.ask, rows, questions)
            if found is not None:
                return found
        return require_jvm(self, f"reading files of table `{name}`").evidence(name, questions)

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a namespace, unless it exists."""
        self.store.create_namespace(namespace)

    def drop_namespace(self, namespace: tuple[str, ...]) -> bool:
        """Drop an empty namespace; :returns: whether it is gone."""
        self._require()
        return self.store.drop_namespace(namespace, self._require)

    def table(self, name: TableName) -> Table | None:
        """The current table; ``None`` where there is none."""
        return None if (stored := self.store.load(name)) is None else self._tables.of(stored, name)

    def view(self, name: TableName) -> View | None:
        """The current view; ``None`` where there is none, and where the catalog has no views."""
        if not self._catalog.capabilities.views:
            return None
        return next(iter(self._catalog.load_views((name,))), None)

    def metadata_json(self, name: TableName) -> Mapping[str, Any] | None:
        """The table's current metadata."""
        return None if (stored := self.store.load(name)) is None else stored.json

    def metadata_location(self, name: TableName) -> str | None:
        """The location of the table's current metadata file."""
        return None if (stored := self.store.load(name)) is None else stored.location

    def commit(self, name: TableName, update: Callable[[Table], Table], holds_rows: bool = False) -> Table:
        """Apply a change to the current table, in one commit."""

        def attempt() -> Table:
            base = self.read_base(name)
            after = update(base.table)
            if self.needs_spark(base, after):
                what = f"restoring partition values of table `{name}`"
                return require_jvm(self, what).commit(name, update, holds_rows)
            with self.draft(base) as draft:
                if not draft.change(after):
                    return base.table
                return self._tables.of(self.land(draft, holds_rows=holds_rows), name)

        return self.retried(attempt)

    def create_branch(self, name: TableName, branch: str) -> None:
        """Create a branch at the table's current snapshot, or move it there."""
        new = {branch: Ref("branch", CURRENT_SNAPSHOT)}
        self.commit(name, lambda table: replace(table, refs={**table.refs, **new}))

    def create(self, table: Table) -> Table:
        """Create a table with exactly these field ids, in one commit."""
        self.store.create_namespace(table.name.namespace)
        commit = creation_commit(table, str(uuid4()), self.store.catalog_properties)
        try:
            (stored,) = self.land_together([], [commit])
        except CommitConflict as error:
            raise EngineError(f"table `{table.name}` already exists") from error
        return self._tables.of(stored, table.name)

    @contextmanager
    def guarded(self, guard: Fence) -> Iterator[None]:
        """A block in which every change has to pass the guard of the lock."""
        before, self.guard = self.guard, guard
        try:
            yield
        finally:
            self.guard = before
            if self._spark is not None:
                self._spark.guard = before

    def fence(self, name: TableName, version: str) -> bool:
        """Move a table, so that every commit to it that began earlier is refused."""
        by = self.guard
        assert by is not None, "only a holder of the lock fences"

        def attempt() -> bool:
            stored = self.store.load(name)
            properties = {} if stored is None else stored.json.get("properties") or {}
            if stored is None or owner_from_properties(properties) not in (None, by.project):
                return False
            base = self._opened(stored, name)
            refs = base.table.refs.items()
            own = [n for n, r in refs if r.kind == "branch" and is_branch_of(n, by.project, version)]
            with self.draft(base) as draft:
                draft.drop_refs(own)
                draft.fence(by)
                self.land(draft)
            return True

        return self.retried(attempt)

    def set_owner(self, name: TableName, owner: str | None) -> None:
        """Claim a table for a project, or give it free."""

        def attempt() -> None:
            base = self.read_base(name)
            if self.guard is None or base.table.owner == owner:
                return
            with self.draft(base) as draft:
                draft.set_properties({OWNER_PROPERTY: owner})
                draft.move_fence_tag(self.guard)
                self.land(draft)

        self.retried(attempt)

    def rename(self, name: TableName, new: TableName) -> None:
        """Give a table another name, in a namespace that is made where it is missing."""
        if self._catalog.capabilities.renames_by_client:
            require_jvm(self, f"renaming table `{name}`").rename(name, new)
            return
        self.store.create_namespace(new.namespace)
        self._require()
        self.store.rename(name, new, self._require)
        if self._spark is not None:
            self._spark.forget(name)

    def mark(self, name: TableName, marker: Marker) -> None:
        """Put the marker and its tags on a table."""

        def attempt() -> None:
            with self.draft(self.read_base(name)) as draft:
                draft.mark(marker, self.guard)
                if not draft.is_empty:
                    self.land(draft)

        if not marker.is_empty:
            self.retried(attempt)

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
        built = append_commit(
            name, self._stored(name), self.store.files, rows, properties, remove, expected_head=expected_head,
            summary=summary, written=self._lists,
        )  # fmt: skip
        land_append(built, self.store)
        self._refresh(name)
        return built.head

    def close(self) -> None:
        """Close the catalog's connections."""
        self.store.close()

    def read_base(self, name: TableName) -> OpenTable:
        """The current table, if the holder of the lock may change it.

        :raises EngineError: the table does not exist.
        :raises LockLost: this process does not hold the lock any more.
        :raises ConflictError: it belongs to another project.
        """
        return self._opened(self._stored(name), name)

    def _stored(self, name: TableName) -> StoredTable:
        if (stored := self.store.load(name)) is None:
            raise EngineError(f"table `{name}` no longer exists in catalog `{self.catalog_name}`")
        return stored

    def _opened(self, stored: StoredTable, name: TableName) -> OpenTable:
        if self.guard is not None:
            self.guard.require_access(name, stored.json)
        return open_table(stored, self._tables.of(stored, name))

    def needs_spark(self, base: OpenTable, after: Table) -> bool:
        """Whether a commit has to write manifests again, which only Spark's engine does."""
        columns = returning_columns(base.table, after)
        return bool(base.table.snapshot and columns and lossy_partition_fields(base.json, columns))

    @contextmanager
    def draft(self, base: OpenTable) -> Iterator[CommitDraft]:
        """A block that prepares and lands a commit of a table, which is empty at first.

        Where the block fails, the new files are deleted, unless the catalog may refer to them.
        """
        draft = CommitDraft(base, self.store.files, is_rest=self.is_rest)
        try:
            yield draft
        except BaseException:
            if not draft.keeps_files:
                draft.discard()
            raise

    def land(self, draft: CommitDraft, *, holds_rows: bool = False) -> StoredTable:
        """Commit a draft, if this process still holds the lock.

        :raises CommitConflict: another writer was faster; nothing was written.
        """
        (stored,) = self.land_together([draft], [draft.finished(holds_rows=holds_rows)])
        return stored

    def land_together(
        self, drafts: Sequence[CommitDraft], commits: Sequence[TableCommit]
    ) -> tuple[StoredTable, ...]:
        """Commit drafts of different tables at once, if this process still holds the lock.

        :param commits: those of the drafts; more than one only where the catalog commits them together.
        :raises CommitConflict: another writer was faster; nothing was written.
        """
        self._require()
        stored = send(self.store, drafts, commits, self._require)
        for commit in commits:
            self._refresh(commit.name)
        return stored

    def _require(self) -> None:
        if self.guard is not None:
            self.guard.require()

    def retried(self, attempt: Callable[[], T]) -> T:
        """The result of an attempt, which is made again where another writer was faster."""
        return retry_on_conflict(
            attempt, longest_pause_s=0.1, is_conflict=lambda error: isinstance(error, CommitConflict)
        )
