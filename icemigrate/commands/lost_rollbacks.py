"""Rollbacks that other clients or retention have made impossible since, as far as that is cheap to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.errors import CatalogError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import TRASH_NAMESPACE
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.undo import recorded_uuid


def find_lost_rollbacks(session: EnvironmentSession, history: History) -> Mapping[str, tuple[str, ...]]:
    """What no rollback of an applied version can restore any more, by version.

    Reads the list of the trash, and the metadata of each table whose rows a rollback would restore.  Values
    that compactions removed from data files are only in manifests, which this does not read.
    """
    search = _Search(session, history)
    return {
        applied.version.text: lost
        for applied in history.applied
        if applied.state is VersionState.APPLIED
        and (record := history.undo_record(applied.version)) is not None
        and (lost := tuple(text for undo in record.tables for text in search.lost(undo)))
    }


class _Search:
    def __init__(self, session: EnvironmentSession, history: History) -> None:
        self.session = session
        self.names: dict[str | None, TableName] = {
            table.uuid: session.names.table(name)
            for name, table in history.state.tables.items()
            if table.uuid
        }
        self._trash: frozenset[TableName] | None = None
        self._snapshots: dict[TableName, frozenset[int] | None] = {}

    def lost(self, undo: TableUndo) -> Iterator[str]:
        if undo.trash is not None and undo.declared_after is None and undo.trash not in self._in_trash():
            yield f"`{undo.declared}` is no longer in the trash: `rollback` cannot restore it"
        before = None if undo.actual_before is None else undo.actual_before.snapshot
        name = self.names.get(recorded_uuid(undo))
        if not undo.rows_changed or undo.rows_open or before is None or name is None:
            return
        there = self._snapshots_of(name)
        if there is not None and before.id not in there:
            yield (
                f"the snapshot that `{undo.declared}` had before this migration has expired: "
                "`rollback` needs `--metadata-only`, which leaves its rows as they are"
            )

    def _in_trash(self) -> frozenset[TableName]:
        if self._trash is None:
            catalog, namespace = self.session.catalog, (TRASH_NAMESPACE,)
            is_there = namespace in catalog.namespaces()
            self._trash = frozenset(catalog.tables(namespace)) if is_there else frozenset()
        return self._trash

    def _snapshots_of(self, name: TableName) -> frozenset[int] | None:
        """The ids of a table's snapshots; ``None`` where it cannot be read."""
        if name not in self._snapshots:
            try:
                metadata = self.session.catalog.metadata_json(name)
            except CatalogError:
                metadata = None
            self._snapshots[name] = (
                None
                if metadata is None
                else frozenset(snapshot["snapshot-id"] for snapshot in metadata.get("snapshots") or ())
            )
        return self._snapshots[name]
