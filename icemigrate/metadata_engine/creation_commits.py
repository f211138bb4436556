"""Creation of many tables: in one transaction of a SQL catalog, or by several requests at once to a server.

A table of a SQL catalog has its marker in the commit that creates it, so a process that dies leaves no table
without one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING
from uuid import uuid4

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import OWNER_PROPERTY
from icemigrate.metadata_engine.apply_updates import apply_updates
from icemigrate.metadata_engine.table_commit import CommitDraft, OpenTable, open_table
from icemigrate.metadata_engine.table_creation import creation_commit
from icemigrate.metadata_engine.table_store import CommitRefused, StoredTable, TableCommit
from icemigrate.spark.commit_ports import TableCreation
from icemigrate.system.worker_threads import DISK_THREADS, SERVER_THREADS, run_in_threads

if TYPE_CHECKING:
    from icemigrate.metadata_engine.engine import MetadataEngine


class MetadataCreations(Frozen):
    """See :class:`~icemigrate.spark.commit_ports.TableCreations`."""

    engine: MetadataEngine

    def create_tables(self, creations: Sequence[TableCreation]) -> None:
        """See :meth:`~icemigrate.spark.commit_ports.TableCreations.create_tables`."""
        for namespace in {creation.first.name.namespace for creation in creations}:
            self.engine.store.create_namespace(namespace)
        if self.engine.is_rest:
            run_in_threads(self._create_alone, creations, SERVER_THREADS)
        else:
            self._create_together(creations)

    def is_refused(self, error: Exception) -> bool:
        """Whether the catalog refused all creations."""
        return isinstance(error, CommitRefused) and not error.keeps_files and not self.engine.is_rest

    def _create_together(self, creations: Sequence[TableCreation]) -> None:
        bases = [self._base(creation) for creation in creations]
        with ExitStack() as prepared:
            drafts = [prepared.enter_context(self.engine.draft(base)) for _, base in bases]
            # A marker writes a file.
            run_in_threads(self._fill, [*zip(drafts, creations, strict=True)], DISK_THREADS)
            commits = [
                replace(commit, updates=(*commit.updates, *draft.updates))
                for (commit, _), draft in zip(bases, drafts, strict=True)
            ]
            self.engine.land_together(drafts, commits)

    def _base(self, creation: TableCreation) -> tuple[TableCommit, OpenTable]:
        """The commit that creates a table, and the table as that commit makes it."""
        store, table = self.engine.store, creation.first
        commit = creation_commit(table, str(uuid4()), store.catalog_properties)
        if table.location is None:
            location = {"action": "set-location", "location": store.default_location(table.name)}
            commit = replace(commit, updates=(*commit.updates, location))
        now_ms = time.time_ns() // 1_000_000
        json = apply_updates(None, commit.updates, previous_location=None, now_ms=now_ms)
        return commit, open_table(StoredTable("", json), table_from_json(json, table.name))

    def _fill(self, part: tuple[CommitDraft, TableCreation]) -> None:
        draft, creation = part
        if creation.is_in_parts:
            draft.change(_completed(draft.base.table, creation))
        guard = self.engine.guard
        if creation.marker is not None:
            draft.mark(creation.marker, guard)
        elif guard is not None and draft.base.table.owner is None:
            draft.set_properties({OWNER_PROPERTY: guard.project})

    def _create_alone(self, creation: TableCreation) -> None:
        engine, name = self.engine, creation.first.name
        commit = creation_commit(creation.first, str(uuid4()), engine.store.catalog_properties)
        engine.land_together([], [commit])
        if creation.is_in_parts:
            engine.commit(name, lambda table: _completed(table, creation))
        if creation.marker is not None:
            engine.mark(name, creation.marker)
        elif engine.guard is not None:
            engine.set_owner(name, engine.guard.project)


def _completed(table: Table, creation: TableCreation) -> Table:
    """A created table with what only a commit after its creation sets."""
    after = creation.after
    return replace(table, schema=after.schema, refs={**table.refs, **after.refs})


def creations_of(engine: MetadataEngine) -> MetadataCreations | None:
    """The creations of several tables; ``None`` where the catalog has neither transactions nor a server for
    several requests at once."""
    return MetadataCreations(engine) if engine.is_rest or engine.store.commits_together else None
