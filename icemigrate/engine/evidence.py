"""Questions about a table's files answered from its manifests, by Iceberg's Java API.

Rows are read only to count what the manifests do not tell: nulls (:mod:`icemigrate.engine.nulls`), and rows
that delete files remove (:mod:`icemigrate.engine.live_rows`).

Manifests that the snapshot of then has as well are passed over: nothing in them is new.  What a merged
manifest carries on from before is told by its file sequence number (format versions 2 and 3), or by its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from icemigrate.data.publication import NOTE, publication
from icemigrate.engine.explain import explained
from icemigrate.engine.java_catalog import JavaCatalog
from icemigrate.engine.kept import find_kept
from icemigrate.engine.live_rows import files_with_live_rows
from icemigrate.engine.manifests import File, Look, notes_since, share
from icemigrate.engine.nulls import Query, count_nulls
from icemigrate.engine.partition_restore import find_losses, told_by_partitions
from icemigrate.engine.written_under import WrittenUnder
from icemigrate.model.evidence import Evidence, Questions
from icemigrate.model.names import TableName
from icemigrate.model.schema import Schema
from icemigrate.sql.names import table_sql


def gather(java: JavaCatalog, ask: Query, name: TableName, questions: Questions) -> Evidence:
    """Answer questions about a table as it is now.

    :raises EngineError: there is no such table, or a manifest cannot be read.
    """
    with explained():
        table = java.table(name)
        rows = table_sql(java.name, name)
        look = Look(java.iceberg, table, _fields(java, questions))
        published, then = None, questions.since
        if questions.rows_of is not None:
            metadata = java.read(table.operations().current())
            published = publication(metadata, questions.rows_of, questions.since)
            then = questions.since if published is None else published.last.id
        since = None if then is None else table.snapshot(then)
        is_known = then is None or since is not None
        added = _Added(questions, WrittenUnder(look) if questions.narrow else None)
        for file in look.added_since(since, is_known):
            added.count(file)
        new = added.paths if is_known else set[str]()
        found = find_losses(java, table, questions.columns)
        # Where partition values are lost, delete files may not apply for now: a query counts wrong.
        files_of = files_with_live_rows(ask, rows, look) if found is None else look.files
        now = files_of(table.currentSnapshot()) if questions.held else []
        lost = {} if found is None else found.losses({file.path: file.live_rows for file in now})
        held = {
            i: share(now, leaves, new, told_by_partitions(lost, leaves))
            for i, leaves in questions.held.items()
        }
        kept = find_kept(look, files_of, questions, held, now, is_known)
        return Evidence(
            files=added.files,
            rows=added.rows,
            snapshots=look.snapshots_since(then),
            nulls=added.nulls | count_nulls(ask, rows, look, _uncertain(look, added.nulls)),
            wide=added.wide,
            held=held,
            there=frozenset(i for i in questions.snapshots if table.snapshot(i) is not None),
            kept=kept.best,
            more_kept=kept.more,
            published=published,
            steps=notes_since(table, then, NOTE) if questions.steps else None,
            partition_losses=lost,
        )


def _uncertain(look: Look, nulls: Mapping[int, int | None]) -> list[int]:
    """The fields whose nulls no metrics tell: where a struct is null, these count what is in it too."""
    schema = look.schema(look.table.schema()) if any(nulls.values()) else Schema(())
    return [i for i, n in nulls.items() if n is None or (n and schema.parent_of(i) is not None)]


def _fields(java: JavaCatalog, questions: Questions) -> Any:
    """The ids of all fields that metrics are needed of, as a Java set."""
    found = java.jvm.java.util.HashSet()
    for field_id in questions.nulls.union(*questions.held.values()):
        found.add(field_id)
    return found


@dataclass(slots=True)
class _Added:
    """What the files that were added come to."""

    questions: Questions
    written_under: WrittenUnder | None
    files: int = 0
    rows: int = 0
    paths: set[str] = field(default_factory=set)
    nulls: dict[int, int | None] = field(default_factory=dict)
    wide: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nulls = dict.fromkeys(self.questions.nulls, 0)
        self.wide = dict.fromkeys(self.questions.narrow, 0)

    def count(self, file: File) -> None:
        """Take a file in."""
        self.files += 1
        self.paths.add(file.path)
        self.rows += file.rows
        for i, so_far in self.nulls.items():
            here = file.nulls.get(i)
            self.nulls[i] = None if so_far is None or here is None else so_far + here
        if self.written_under is not None:
            schema = self.written_under(file)
            for i, narrow in self.questions.narrow.items():
                then = None if schema is None else schema.by_id(i)
                # A file of a time without the field does not hold it, so it can be read as any type.
                self.wide[i] += schema is None or (then is not None and then.type != narrow)
