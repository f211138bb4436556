"""One commit of one table: its changes, its owner and fence, and the snapshots of references that need one.

A commit is prepared on the metadata that was read before the lock is checked; see
:mod:`icemigrate.spark.commit_fence` for the conditions of every commit.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from icemigrate.catalog.capabilities import NAME_MAPPING
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.ref_names import FENCE_TAG
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, MAIN_BRANCH, Ref, Table
from icemigrate.iceberg.table_properties import (
    COMMIT_PROPERTY,
    FENCE_PROPERTY,
    OWNER_PROPERTY,
    SUMMARY_PREFIX,
)
from icemigrate.metadata_engine.apply_updates import apply_updates, complete_metadata
from icemigrate.metadata_engine.name_mapping import updated_name_mapping
from icemigrate.metadata_engine.snapshot_files import NewSnapshot, append_snapshot
from icemigrate.metadata_engine.table_store import (
    BeforeRetry,
    CommitRefused,
    FileStore,
    StoredTable,
    TableCommit,
    TableStore,
)
from icemigrate.metadata_engine.table_updates import (
    property_updates,
    ref_update,
    requirements,
    table_updates,
)
from icemigrate.spark.append_snapshot import max_ref_age_ms
from icemigrate.spark.commit import TAG_SUMMARY_KEY
from icemigrate.spark.commit_fence import LONGEST_PAUSE, Fence
from icemigrate.spark.engine_port import Marker


class OpenTable(Frozen):
    """A table at the start of a commit.

    :param json: its metadata with the parts that format version 1 may omit.
    :param table: the same as a plan's table.
    """

    stored: StoredTable
    json: Json
    table: Table


def open_table(stored: StoredTable, table: Table) -> OpenTable:
    """A table that was just read.

    :param table: that of the stored metadata.
    """
    return OpenTable(stored, complete_metadata(stored.json), table)


class CommitDraft:
    """The updates of a commit, and the files that they refer to.

    :param is_rest: whether the fence tag is what a commit asserts; SQL catalogs compare all metadata.
    :ivar keeps_files: whether the commit was sent, so that the catalog may refer to the new files.
    """

    def __init__(self, base: OpenTable, files: FileStore, *, is_rest: bool) -> None:
        self.base = base
        self.updates: list[Json] = []
        self.new_files: list[str] = []
        self.keeps_files = False
        self._files = files
        self._is_rest = is_rest
        self._metadata: Mapping[str, Any] = base.json

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not self.updates

    def change(self, after: Table) -> bool:
        """Add the difference to a target.

        :returns: whether there is one.
        """
        before, on_empty = self.base.table, dict[str, Ref]()
        if before.snapshot is None:
            on_empty = {name: ref for name, ref in after.refs.items() if ref.snapshot_id == CURRENT_SNAPSHOT}
            after = replace(after, refs={k: v for k, v in after.refs.items() if k not in on_empty})
        self._add(table_updates(self.base.json, before, _with_name_mapping(before, after)))
        for name, ref in on_empty.items():
            self._create_on_empty_snapshot(name, ref)
        return not self.is_empty

    def sign(self, run: str) -> None:
        """Record the run in a property."""
        self.set_properties({COMMIT_PROPERTY: f"{run}/{uuid4().hex[:8]}"})

    def set_properties(self, properties: Mapping[str, str | None]) -> None:
        """Set properties; ``None`` removes one."""
        before = {key: value for key, value in self._metadata["properties"].items() if key in properties}
        after = {key: value for key, value in properties.items() if value is not None}
        self._add(list(property_updates(before, after)))

    def drop_refs(self, names: Sequence[str]) -> None:
        """Drop branches or tags."""
        self._add([{"action": "remove-snapshot-ref", "ref-name": name} for name in names])

    def remove_schemas(self, ids: Collection[int]) -> None:
        """Remove schemas that are not the current one."""
        self._add([{"action": "remove-schemas", "schema-ids": sorted(ids)}])

    def add_snapshot(self, summary: Mapping[str, str]) -> int:
        """Add a snapshot without rows of its own and outside all branches; returns its id."""
        snapshot = append_snapshot(
            self._metadata, self._files, summary, parent_id=self._current(), now_ms=_now_ms()
        )
        return self._add_snapshot(snapshot)

    def mark(self, marker: Marker, by: Fence | None) -> None:
        """Add a migration's marker and its tags, as :mod:`icemigrate.spark.append_snapshot` does.

        :param by: claims a table without an owner.
        """
        snapshot = None if marker.is_started else self.add_snapshot(marker.summary)
        now_ms, there = _now_ms(), self._refs()
        updates = list[Json]()
        for tag, number in marker.tags(snapshot, there):
            age_ms = self._age_ms(number, now_ms)
            if age_ms is not None:
                ref = Ref("tag", number, max_ref_age_ms=max_ref_age_ms(marker.keep, age_ms))
                updates.append(ref_update(tag, ref, number))
        self._add(updates)
        if by is None:
            return
        claims = self.base.table.owner is None
        if claims:
            self.set_properties({OWNER_PROPERTY: by.project})
        if self._is_rest and (claims or (snapshot is not None and FENCE_TAG in self._refs())):
            self.move_fence_tag(by, snapshot, marker.keep)

    def fence(self, by: Fence) -> None:
        """Refuse every commit that began earlier."""
        self.set_properties({FENCE_PROPERTY: by.fence})
        self.move_fence_tag(by)

    def move_fence_tag(
        self, by: Fence, snapshot_id: int | None = None, keep: timedelta | None = None
    ) -> None:
        """Move the fence tag on a REST catalog, to a new snapshot unless one is given.

        :param keep: how long the tag is kept, at least for a week; ``None`` for ever.
        """
        if not self._is_rest:
            return
        if snapshot_id is None:
            summary = {f"{SUMMARY_PREFIX}project": by.project, f"{SUMMARY_PREFIX}fence": by.fence}
            snapshot_id = self.add_snapshot(summary)
        age = max_ref_age_ms(None if keep is None else max(keep, LONGEST_PAUSE), 0)
        self._add([ref_update(FENCE_TAG, Ref("tag", snapshot_id, max_ref_age_ms=age), snapshot_id)])

    def finished(self, *, holds_rows: bool = False) -> TableCommit:
        """The commit.

        :param holds_rows: whether it also fails after concurrent writes of rows.
        """
        unmoved = (MAIN_BRANCH,) if holds_rows else ()
        wanted = requirements(self.base.json, self.updates, unmoved)
        return TableCommit(self.base.table.name, self.base.stored, tuple(self.updates), tuple(wanted))

    def discard(self) -> None:
        """Delete the files of a commit that was refused."""
        for location in self.new_files:
            self._files.delete(location)

    def _create_on_empty_snapshot(self, name: str, ref: Ref) -> None:
        """Create a reference on a table without a snapshot, as Spark does: on an empty one."""
        number = self.add_snapshot({TAG_SUMMARY_KEY: name} if ref.kind == "tag" else {})
        self._add([ref_update(name, ref, number)])

    def _add(self, updates: Sequence[Json]) -> None:
        if updates:
            self.updates.extend(updates)
            self._metadata = apply_updates(
                self._metadata, updates, previous_location=None, now_ms=self._metadata["last-updated-ms"]
            )

    def _add_snapshot(self, snapshot: NewSnapshot) -> int:
        self.new_files.extend(snapshot.files)
        self._add([{"action": "add-snapshot", "snapshot": snapshot.json}])
        number: int = snapshot.json["snapshot-id"]
        return number

    def _current(self) -> int | None:
        main = self._metadata["refs"].get(MAIN_BRANCH)
        return None if main is None else main["snapshot-id"]

    def _refs(self) -> dict[str, int]:
        return {name: ref["snapshot-id"] for name, ref in self._metadata["refs"].items()}

    def _age_ms(self, number: int, now_ms: int) -> int | None:
        """The age of a snapshot; ``None`` where it expired meanwhile: no rows remain to keep."""
        found = (s for s in self._metadata["snapshots"] if s["snapshot-id"] == number)
        snapshot = next(found, None)
        return None if snapshot is None else now_ms - int(snapshot["timestamp-ms"])


def send(
    store: TableStore,
    drafts: Sequence[CommitDraft],
    commits: Sequence[TableCommit],
    before_retry: BeforeRetry,
) -> tuple[StoredTable, ...]:
    """Commit drafts, and note whether the catalog may refer to their files.

    :param commits: those of the drafts, in the same order.
    """
    for draft in drafts:
        draft.keeps_files = True
    try:
        return store.commit(commits, before_retry)
    except CommitRefused as error:
        for draft in drafts:
            draft.keeps_files = error.keeps_files
        raise


def _with_name_mapping(before: Table, after: Table) -> Table:
    """The target with the name mapping that its schema needs, where the table has one."""
    mapping = before.properties.get(NAME_MAPPING)
    if mapping is None or before.schema == after.schema or after.properties.get(NAME_MAPPING) != mapping:
        return after
    updated = updated_name_mapping(mapping, before.schema, after.schema)
    return replace(after, properties={**after.properties, NAME_MAPPING: updated})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
