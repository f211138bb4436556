"""The ports to commits of table metadata, which Spark's engine and the one in Python implement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.spark.engine_port import Engine, Marker, SchemaRemoval

if TYPE_CHECKING:
    from icemigrate.spark.commit_fence import Fence
    from icemigrate.spark.spark_engine import SparkEngine
    from icemigrate.spark.table_copies import TableCopies


JVM_HINT = (
    "run the command where Spark runs in this process: with `master` instead of `remote` in the environment"
)
"""What to do where Spark Connect has no way."""


class TableCommits(Protocol):
    """Commits of an engine, each of one table's metadata on the state that was read."""

    def read_base(self, name: TableName) -> Any:
        """The current table; its attributes ``table`` and ``json`` are the plan's table and the metadata.

        :raises EngineError: the table does not exist.
        :raises LockLost: this process does not hold the lock any more.
        :raises ConflictError: it belongs to another project.
        """
        ...

    def commit(
        self, base: Any, after: Table, marker: Marker | None, *, holds_rows: bool, run: str
    ) -> Schema | None:
        """Commit the difference between an opened table and a target, and the marker.

        :param holds_rows: as in :meth:`~icemigrate.spark.engine_port.Engine.commit`.
        :param run: id that the commit records where no marker of the migration does; empty elsewhere.
        :returns: the schema that the commit produced; ``None`` without a difference.
        :raises Exception: another writer was faster (:meth:`is_conflict`), or an engine's own error.
        """
        ...

    def remove_schemas(
        self, name: TableName, uuid: str | None, unneeded: Callable[[Mapping[str, Any]], frozenset[int]]
    ) -> SchemaRemoval:
        """Remove schemas from a table's metadata; no new snapshot can name one of them.

        :param uuid: of the table that was shown; ``None`` where it has none.
        :param unneeded: ids of the schemas to remove, from the JSON of the current metadata.
        :raises LockLost: this process does not hold the lock any more; nothing was removed.
        :raises ConflictError: another table has the name now; nothing was removed.
        """
        ...

    def is_conflict(self, error: Exception) -> bool:
        """Whether an error of :meth:`commit` is that of the slower of two writers; nothing was written."""
        ...


class TableChange(Frozen):
    """One table's part of a transaction; the fields are the arguments of :meth:`TableCommits.commit`."""

    base: Any
    after: Table
    marker: Marker | None
    holds_rows: bool
    run: str


class TransactionCommits(TableCommits, Protocol):
    """Commits of an engine that may change several tables at once."""

    def needs_own_commit(self, change: TableChange) -> bool:
        """Whether a change can only be made in a commit of its own."""
        ...

    def commit_together(self, changes: Sequence[TableChange]) -> tuple[Schema | None, ...]:
        """Commit the changes of all tables, or none, as :meth:`TableCommits.commit` does for one.

        :returns: the schema that each change produced; ``None`` without a difference.
        """
        ...


class TableCreation(Frozen):
    """A table to create.

    :param first: as its creation makes it.
    :param after: as the plan declares it, with what only a later commit can set.
    :param marker: that it gets.
    """

    first: Table
    after: Table
    marker: Marker | None

    @property
    def is_in_parts(self) -> bool:
        """Whether a commit has to follow the creation."""
        return bool(self.after.refs) or self.after.schema != self.first.schema


class TableCreations(Protocol):
    """Creates several tables at once, claims them for the project of the lock, and marks them."""

    def create_tables(self, creations: Sequence[TableCreation]) -> None:
        """Create tables, with their namespaces.

        :raises EngineError: a table was not created; others may be, see :meth:`is_refused`.
        """
        ...

    def is_refused(self, error: Exception) -> bool:
        """Whether an error of :meth:`create_tables` means that no table was created."""
        ...


class CommittingEngine(Engine, Protocol):
    """An engine that commits several changes of a table at once.

    :ivar guard: what every change has to pass; see :meth:`~icemigrate.spark.engine_port.Engine.guarded`.
    """

    guard: Fence | None

    @property
    def commits(self) -> TableCommits:
        """Its commits."""
        ...

    @property
    def transactions(self) -> TransactionCommits | None:
        """Its commits of several tables; ``None`` where each table has a commit of its own."""
        ...

    @property
    def creations(self) -> TableCreations | None:
        """Creates several tables at once; ``None`` where each table is created alone."""
        ...

    def in_jvm(self, purpose: str) -> SparkEngine | None:
        """Spark's engine with a JVM in this process, which may start now; ``None`` for Spark Connect.

        :param purpose: what needs Spark, as the subject of a sentence.
        :raises EngineError: Spark may not be used.
        """
        ...

    @property
    def step_engine(self) -> Engine:
        """The engine for steps on tables themselves: this one, or Spark's beside commits in Python.

        :raises EngineError: Spark failed to start.
        """
        ...

    def table_copies(self) -> TableCopies | None:
        """Copies of tables on which statements run; ``None`` where the engine runs no statements."""
        ...


def require_jvm(engine: CommittingEngine, purpose: str) -> SparkEngine:
    """The engine with Iceberg's Java library.

    :param purpose: what needs it, as the subject of a sentence.
    :raises EngineError: Spark runs behind Spark Connect.
    """
    spark = engine.in_jvm(purpose)
    if spark is None:
        raise EngineError(
            f"{purpose} needs Iceberg's Java library, which Spark Connect does not reach", JVM_HINT
        )
    return spark
