"""The commits by which the publisher lands a table's plan, made in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from icemigrate.errors import ConflictError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.metadata_engine.table_commit import CommitDraft, OpenTable
from icemigrate.metadata_engine.table_store import CommitConflict
from icemigrate.spark.commit_ports import TableChange, require_jvm
from icemigrate.spark.engine_port import Marker, SchemaRemoval
from icemigrate.spark.java_errors import is_commit_conflict
from icemigrate.system.worker_threads import DISK_THREADS, run_in_threads

if TYPE_CHECKING:
    from icemigrate.metadata_engine.engine import MetadataEngine


class MetadataCommits(Frozen):
    """See :class:`~icemigrate.spark.commit_ports.TransactionCommits`."""

    engine: MetadataEngine

    def read_base(self, name: TableName) -> OpenTable:
        """The current table, if the holder of the lock may change it."""
        return self.engine.read_base(name)

    def commit(
        self, base: OpenTable, after: Table, marker: Marker | None, *, holds_rows: bool, run: str
    ) -> Schema | None:
        """Commit the difference between an opened table and a target, and the marker."""
        change = TableChange(base, after, marker, holds_rows, run)
        if self.needs_own_commit(change):
            return self._commit_in_spark(base, after, marker, holds_rows=holds_rows, run=run)
        (schema,) = self.commit_together([change])
        return schema

    def needs_own_commit(self, change: TableChange) -> bool:
        """Whether a commit has to write manifests again, which only Spark's engine does."""
        return self.engine.needs_spark(change.base, change.after)

    def commit_together(self, changes: Sequence[TableChange]) -> tuple[Schema | None, ...]:
        """Commit the changes of all tables, or none."""
        with ExitStack() as prepared:
            drafts = [prepared.enter_context(self.engine.draft(change.base)) for change in changes]
            # A marker writes a file.
            run_in_threads(self._fill, [*zip(drafts, changes, strict=True)], DISK_THREADS)
            sent = {
                draft: change for draft, change in zip(drafts, changes, strict=True) if not draft.is_empty
            }
            if sent:
                commits = [draft.finished(holds_rows=change.holds_rows) for draft, change in sent.items()]
                self.engine.land_together(list(sent), commits)
            return tuple(
                change.after.schema if draft in sent else None
                for draft, change in zip(drafts, changes, strict=True)
            )

    def _fill(self, part: tuple[CommitDraft, TableChange]) -> None:
        draft, change = part
        if draft.change(change.after) and change.run:
            draft.sign(change.run)
        if change.marker is not None and not change.marker.is_empty:
            draft.mark(change.marker, self.engine.guard)

    def _commit_in_spark(
        self, base: OpenTable, after: Table, marker: Marker | None, *, holds_rows: bool, run: str
    ) -> Schema | None:
        """The same through Spark, whose engine writes manifests again."""
        name = base.table.name
        spark = require_jvm(self.engine, f"restoring partition values of table `{name}`")
        there = spark.commits.read_base(name)
        if str(there.metadata.metadataFileLocation()) != base.stored.location:
            raise CommitConflict(f"another writer changed table `{name}`")
        return spark.commits.commit(there, after, marker, holds_rows=holds_rows, run=run)

    def remove_schemas(
        self, name: TableName, uuid: str | None, unneeded: Callable[[Json], frozenset[int]]
    ) -> SchemaRemoval:
        """Remove schemas from a table's metadata.

        A REST server may not know the update; Spark's engine recognizes its answers.
        """
        if self.engine.is_rest:
            spark = require_jvm(self.engine, f"removing schemas of table `{name}`")
            return spark.commits.remove_schemas(name, uuid, unneeded)
        return self.engine.retried(lambda: self._removed_schemas(name, uuid, unneeded))

    def _removed_schemas(
        self, name: TableName, uuid: str | None, unneeded: Callable[[Json], frozenset[int]]
    ) -> SchemaRemoval:
        base = self.engine.read_base(name)
        if uuid not in (None, base.table.uuid):
            raise ConflictError(f"another table now has the name `{name}`", "run `icemigrate maintain` again")
        ids = unneeded(base.json)
        if ids:
            with self.engine.draft(base) as draft:
                draft.remove_schemas(ids)
                self.engine.land(draft)
        return SchemaRemoval(len(ids))

    def is_conflict(self, error: Exception) -> bool:
        """Whether another writer committed first."""
        return isinstance(error, CommitConflict) or is_commit_conflict(error)
