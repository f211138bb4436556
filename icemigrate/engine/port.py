"""What icemigrate asks of the one who changes tables: Spark, or a double of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.model.evidence import Evidence, Questions
from icemigrate.model.layout import OldShare
from icemigrate.model.marks import before_tag_names, numbered_before_tag, tag_name
from icemigrate.model.names import TableName
from icemigrate.model.reserved import SUMMARY_PREFIX
from icemigrate.model.table import Table

if TYPE_CHECKING:
    from icemigrate.engine.guard import Guard


class Marker(Frozen):
    """The record of a migration on a table itself: a tagged snapshot without rows of its own.

    :param checksum: of the migration file's parsed content.
    :param before: the snapshot that was current before the migration, where the table had rows then;
        ``None`` leaves an earlier tag of it alone.
    :param keep: how long from now the tags are kept; ``None`` for ever.
    :param is_begun: the migration goes on with the rows: so far only ``before`` is kept by its tag.
    :param is_fixed: ``before`` is as given, whatever the table's current snapshot is by now.
    :param run: of the lock under which the migration runs, see :class:`~icemigrate.history.intent.Intent`.
    :param needed_tags: tags that must not move, since values depend on their snapshots.
    """

    project: str
    version: str
    description: str
    checksum: str
    before: int | None = None
    keep: timedelta | None = None
    is_begun: bool = False
    is_fixed: bool = False
    run: str = ""
    needed_tags: frozenset[str] = frozenset()

    @property
    def tag(self) -> str:
        """The tag under which the table reads with the migration's schema."""
        return tag_name(self.project, self.version)

    def before_tag(self, refs: Mapping[str, int]) -> str:
        """The tag under which the rows are as they were before it: the first one that may move there.

        :param refs: the table's references, and the snapshots that they name.
        """
        numbered = (numbered_before_tag(self.project, self.version, number) for number in count(1))
        return next(
            n for n in numbered if n not in self.needed_tags or refs.get(n, self.before) == self.before
        )

    def own_tags(self, names: Iterable[str]) -> set[str]:
        """Those of the names that are tags of this migration."""
        return {n for n in names if n == self.tag} | set(before_tag_names(self.project, self.version, names))

    @property
    def summary(self) -> dict[str, str]:
        """What the snapshot's summary says."""
        values = {
            "project": self.project,
            "version": self.version,
            "description": self.description,
            "checksum": self.checksum,
            **({"run": self.run} if self.run else {}),
        }
        return {f"{SUMMARY_PREFIX}{key}": value for key, value in values.items()}


OnProgress: TypeAlias = Callable[[OldShare], None]
"""Told of how many files lie the old way still, before the first is rewritten and behind every commit.

It may raise: all that was committed stays."""


class Engine(Protocol):
    """Who changes tables.

    Names are those in the catalog, without the catalog's own name.  Every method may raise
    :class:`~icemigrate.errors.EngineError`; nothing else comes out of the engine.
    """

    @property
    def catalog_name(self) -> str:
        """The catalog's name in Spark SQL."""
        ...

    @property
    def takes_many_columns(self) -> bool:
        """Whether one ``ALTER COLUMN`` may be about several columns."""
        ...

    def sql(self, text: str) -> None:
        """Run one statement."""
        ...

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        """Run one statement that writes rows.

        :param branch: the branch of the table that it writes to.
        :param summary: what every snapshot that it makes says of itself.
        :raises EngineError: it failed, or the branch has no new snapshot of this statement.
        """
        ...

    def rewrite_old_files(
        self, name: TableName, call: str, is_sorted: bool, on_progress: OnProgress = lambda share: None
    ) -> int:
        """Write files again that lie otherwise than a table is partitioned now, and no others.

        :param call: the ``CALL`` that rewrites every file.
        :param is_sorted: whether the new files keep the table's sort order.
        :returns: how many lie the old way afterwards, since others wrote them meanwhile.
        """
        ...

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""
        ...

    def evidence(self, name: TableName, questions: Questions) -> Evidence:
        """What a table's manifests say."""
        ...

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Make a namespace, unless it is there."""
        ...

    def drop_namespace(self, namespace: tuple[str, ...]) -> bool:
        """Drop a namespace in which nothing is.

        :returns: whether it is gone; ``False`` where something is in it.
        """
        ...

    def table(self, name: TableName) -> Table | None:
        """The table as it is now, not as some cache has it; ``None`` where there is none."""
        ...

    def metadata_json(self, name: TableName) -> Mapping[str, Any] | None:
        """The table's metadata as it is now; ``None`` where there is no such table."""
        ...

    def commit(self, name: TableName, fold: Callable[[Table], Table], holds_rows: bool = False) -> Table:
        """Fold a change over the table as it is, in one commit that asserts what was read.

        Where another writer was faster, the fold is done again on what is there then.

        :param fold: the table as it shall be; called again on every try, so it must be pure.
        :param holds_rows: whether rows that others write meanwhile are asserted against as well: a REST
            catalog is content with a schema that nobody changed.
        :returns: the table after the commit; as it was, where the fold changes nothing.
        """
        ...

    def create(self, table: Table) -> Table:
        """Make a table under exactly the field ids given, of types that Spark SQL may have no words for.

        :returns: the table that was made.
        """
        ...

    def guarded(self, guard: Guard) -> AbstractContextManager[None]:
        """A block in which every change has to pass the guard of the lock."""
        ...

    def fence(self, name: TableName, version: str) -> bool:
        """Move a table, so that every commit to it that was begun before is refused.

        :param version: of the migration that was interrupted, whose branches go too.
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

        Properties change in the same commit.  The commit asserts what it read, so of any number of writers
        that saw one head exactly one moves it (on REST by the requirement ``assert-ref-snapshot-id``, on SQL
        catalogs by the metadata location).

        :param rows: values by column; ``datetime`` with a time zone for ``timestamptz``, JSON's values else.
        :param expected_head: id of main's snapshot as it was read; ``None`` where there was none.
        :param summary: what the new snapshot says of itself.
        :returns: the new head's snapshot id.
        :raises HeadMoved: main is another one; nothing was written.
        """
        ...

    def metadata_location(self, name: TableName) -> str | None:
        """Where the table's metadata file is now; ``None`` where there is no such table."""
        ...
