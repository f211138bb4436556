"""The commits by which the publisher lands a table's plan, made in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.metadata_engine.table_commit import OpenTable
from icemigrate.metadata_engine.table_store import CommitConflict
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.java_errors import is_commit_conflict

if TYPE_CHECKING:
    from icemigrate.metadata_engine.engine import MetadataEngine


class MetadataCommits(Frozen):
    """See :class:`~icemigrate.spark.publish_atomic.TableCommits`."""

    engine: MetadataEngine

    def read_base(self, name: TableName) -> OpenTable:
        """The current table, if the holder of the lock may change it."""
        return self.engine.read_base(name)

    def commit(
        self, base: OpenTable, after: Table, marker: Marker | None, *, holds_rows: bool, run: str
    ) -> Schema | None:
        """Commit the difference between an opened table and a target, and the marker."""
        if self.engine.needs_spark(base, after):
            return self._commit_in_spark(base, after, marker, holds_rows=holds_rows, run=run)
        draft = self.engine.draft(base)
        if draft.change(after) and run:
            draft.sign(run)
        if marker is not None and not marker.is_empty:
            draft.mark(marker, self.engine.guard)
        if draft.is_empty:
            return None
        self.engine.land(draft, holds_rows=holds_rows)
        return after.schema

    def _commit_in_spark(
        self, base: OpenTable, after: Table, marker: Marker | None, *, holds_rows: bool, run: str
    ) -> Schema | None:
        """The same through Spark, whose engine writes manifests again."""
        name = base.table.name
        spark = self.engine.in_spark(f"restoring partition values of table `{name}`")
        there = spark.commits.read_base(name)
        if str(there.metadata.metadataFileLocation()) != base.stored.location:
            raise CommitConflict(f"another writer changed table `{name}`")
        return spark.commits.commit(there, after, marker, holds_rows=holds_rows, run=run)

    def is_conflict(self, error: Exception) -> bool:
        """Whether another writer committed first."""
        return isinstance(error, CommitConflict) or is_commit_conflict(error)
