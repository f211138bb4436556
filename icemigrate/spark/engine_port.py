"""The port to the engine that changes tables: Spark, or a test double."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.iceberg.file_evidence_values import Evidence, EvidenceQuery
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import OldSpecFiles
from icemigrate.iceberg.ref_names import (
    before_tag_names,
    is_released_tag_of,
    numbered_before_tag,
    released_tag_name,
    tag_name,
)
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import SUMMARY_PREFIX
from icemigrate.iceberg.views import View

if TYPE_CHECKING:
    from icemigrate.spark.commit_fence import Fence


class Marker(Frozen):
    """The record of a migration on a table itself: a tagged snapshot without rows of its own.

    :param checksum: of the migration file's parsed content.
    :param before: the snapshot that was current before the migration, if the table had rows then; ``None``
        keeps an earlier tag of it.
    :param keep: how long from now the tags are kept; ``None`` for ever.
    :param is_started: whether the migration continues with the rows: until then only the tag of ``before`` is
        set.
    :param is_fixed: whether ``before`` is as given, whatever the table's current snapshot is.
    :param run: id of the migration's lock, see :class:`~icemigrate.history.recorded_versions.Intent`.
    :param needed_tags: tags that must not move, because values depend on their snapshots.
    :param released: the snapshots of branches and tags that the migration moves or drops: tags keep them for
        its undo.
    """

    project: str
    version: str
    description: str
    checksum: str
    before: int | None = None
    keep: timedelta | None = None
    is_started: bool = False
    is_fixed: bool = False
    run: str = ""
    needed_tags: frozenset[str] = frozenset()
    released: tuple[int, ...] = ()

    @property
    def tag(self) -> str:
        """The tag under which the table reads with the migration's schema."""
        return tag_name(self.project, self.version)

    def before_tag(self, refs: Mapping[str, int]) -> str:
        """The tag of the rows from before the migration: the first one that may move there.

        :param refs: the table's references, and their snapshots.
        """
        numbered = (numbered_before_tag(self.project, self.version, number) for number in count(1))
        return next(
            n for n in numbered if n not in self.needed_tags or refs.get(n, self.before) == self.before
        )

    def own_tags(self, names: Iterable[str]) -> set[str]:
        """The tags of this migration among the names."""
        names = tuple(names)
        own = {n for n in names if n == self.tag or is_released_tag_of(n, self.project, self.version)}
        return own | set(before_tag_names(self.project, self.version, names))

    def released_tags(self, refs: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        """The tags of :attr:`released`, with their snapshots; no tag of an earlier run moves.

        :param refs: the table's references, and their snapshots.
        """
        known = {refs[name]: name for name in refs if is_released_tag_of(name, self.project, self.version)}
        names = (released_tag_name(self.project, self.version, number) for number in count(1))
        free = (name for name in names if name not in refs)
        return tuple((known.get(s) or next(free), s) for s in self.released)

    def tags(self, own: int | None, refs: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        """The tags to set, with their snapshots; a needed tag that exists stays as it is.

        :param own: the marker's snapshot; ``None`` where the migration continues with the rows.
        :param refs: the table's references, and their snapshots.
        """
        tags = ((self.tag, own), (self.before_tag(refs), self.before), *self.released_tags(refs))
        return tuple(
            (tag, snapshot)
            for tag, snapshot in tags
            if snapshot is not None and not (tag in self.needed_tags and tag in refs)
        )

    @property
    def is_empty(self) -> bool:
        """Whether it puts no tag on a table yet: the migration continues, and has nothing to keep."""
        return self.is_started and self.before is None and not self.released

    @property
    def summary(self) -> dict[str, str]:
        """The snapshot's summary."""
        values = {
            "project": self.project,
            "version": self.version,
            "description": self.description,
            "checksum": self.checksum,
            **({"run": self.run} if self.run else {}),
        }
        return {f"{SUMMARY_PREFIX}{key}": value for key, value in values.items()}


class SchemaRemoval(Frozen):
    """The result of a commit that removes schemas.

    :param removed: the number of removed schemas; 0 where all of them are needed now, or after a refusal.
    :param refusal: why the catalog's server did not remove them; ``None`` where it did.
    """

    removed: int
    refusal: str | None = None


KEPT_TEXT = "it accepted the commit and kept the schemas"
"""The refusal of a server that ignores the update."""

OnProgress: TypeAlias = Callable[[OldSpecFiles], None]
"""Called with the number of old files, before the first is rewritten and after every commit.

It may raise: finished commits stay.
"""


def no_progress(files: OldSpecFiles) -> None:
    """Ignore the progress of a rewrite."""


class Engine(Protocol):
    """Changes tables. Names are those in the catalog, without the catalog's own name.

    Every method may raise :class:`~icemigrate.errors.EngineError`; other exceptions are converted to it.
    """

    @property
    def catalog_name(self) -> str:
        """The catalog's name in Spark SQL."""
        ...

    @property
    def runs_sql(self) -> bool:
        """Whether steps run as the plan's statements; otherwise the engine commits what they would make."""
        ...

    @property
    def takes_many_columns(self) -> bool:
        """Whether one ``ALTER COLUMN`` may be about several columns."""
        ...

    def sql(self, text: str) -> None:
        """Run one statement."""
        ...

    def in_time_zone(self, zone: str) -> AbstractContextManager[None]:
        """A block in which times without a zone are in this one."""
        ...

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        """Run one statement that writes rows.

        :param branch: the branch of the table that it writes to.
        :param summary: properties of the summary of every snapshot that it creates.
        :raises EngineError: it failed, or the branch has no new snapshot of this statement.
        """
        ...

    def rewrite_old_files(
        self, name: TableName, call: str, is_sorted: bool, on_progress: OnProgress = no_progress
    ) -> int:
        """Rewrite only the files whose partition spec is not the table's current one.

        :param call: the ``CALL`` that rewrites every file.
        :param is_sorted: whether the new files keep the table's sort order.
        :returns: the number of old files after it, which other clients wrote meanwhile.
        """
        ...

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""
        ...

    def evidence(self, name: TableName, questions: EvidenceQuery) -> Evidence:
        """The answers to questions about a table's manifests."""
        ...

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a namespace, unless it exists."""
        ...

    def drop_namespace(self, namespace: tuple[str, ...]) -> bool:
        """Drop an empty namespace.

        :returns: whether it is gone; ``False`` where it is not empty.
        """
        ...

    def table(self, name: TableName) -> Table | None:
        """The current table, not a cached one; ``None`` where there is none."""
        ...

    def view(self, name: TableName) -> View | None:
        """The current view; ``None`` where there is none, and where the catalog has no views."""
        ...

    def metadata_json(self, name: TableName) -> Mapping[str, Any] | None:
        """The table's current metadata; ``None`` where there is no such table."""
        ...

    def commit(self, name: TableName, update: Callable[[Table], Table], holds_rows: bool = False) -> Table:
        """Apply a change to the current table, in one commit that asserts the metadata that was read.

        If another writer was faster, the change is applied again to the new state.

        :param update: returns the target table; called again on every attempt, so it must be pure.
        :param holds_rows: whether the commit also fails after concurrent writes of rows: a REST catalog only
            compares the schema otherwise.
        :returns: the table after the commit; unchanged where there is no difference.
        """
        ...

    def create_branch(self, name: TableName, branch: str) -> None:
        """Create a branch at the table's current snapshot, or move it there, in one fenced commit."""
        ...

    def create(self, table: Table) -> Table:
        """Create a table with exactly these field ids, with types that Spark SQL may not support.

        :returns: the created table.
        """
        ...

    def guarded(self, guard: Fence) -> AbstractContextManager[None]:
        """A block in which every change has to pass the guard of the lock."""
        ...

    def fence(self, name: TableName, version: str) -> bool:
        """Move a table, so that every commit to it that began earlier is refused.

        :param version: of the interrupted migration, whose branches are dropped too.
        :returns: ``False`` where there is no such table, or another project owns it.
        """
        ...

    def set_owner(self, name: TableName, owner: str | None) -> None:
        """Claim a table for a project, or give it free."""
        ...

    def rename(self, name: TableName, new: TableName) -> None:
        """Give a table another name, in a namespace that is made where it is missing.

        For a table that Spark cannot load, which no statement can rename.
        """
        ...

    def mark(self, name: TableName, marker: Marker) -> None:
        """Put the marker and its tags on a table, in one commit that moves no branch.

        Tags of an earlier run of the same migration are replaced.
        """
        ...

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
        """Move the head of the branch ``main`` by compare-and-swap: one new snapshot, with or without rows.

        Properties change in the same commit.  The commit asserts the head that it read, so of any number of
        writers that read one head exactly one moves it (on REST by the requirement
        ``assert-ref-snapshot-id``, on SQL catalogs by the metadata location).

        :param rows: values by column; ``datetime`` with a time zone for ``timestamptz``, JSON values for
            other types.
        :param expected_head: id of main's snapshot when it was read; ``None`` without one.
        :param summary: the summary of the new snapshot.
        :returns: the new head's snapshot id.
        :raises HeadMoved: main has another head; nothing was written.
        """
        ...

    def metadata_location(self, name: TableName) -> str | None:
        """The location of the table's current metadata file; ``None`` where there is no such table."""
        ...
