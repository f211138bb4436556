"""The snapshots of a table that the undo of migrations reads."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen
from icemigrate.history.history_properties import History


class NeededSnapshot(Frozen):
    """A snapshot that an undo reads.

    :param version: the migration.
    """

    snapshot_id: int
    version: Version


def snapshots_with_last_copies(history: History, uuid: str | None) -> Iterator[NeededSnapshot]:
    """The snapshots of a table with values that a rollback left there, and that are nowhere else.

    :raises HistoryError: an undo record is damaged.
    """
    for applied, record in history.with_last_copies():
        for undo in record.tables:
            before = undo.actual_before
            if before is not None and before.uuid is not None and before.uuid == uuid:
                yield from (NeededSnapshot(copy.snapshot_id, applied.version) for copy in undo.last_copies)


def snapshots_before_row_changes(history: History, uuid: str | None) -> Iterator[NeededSnapshot]:
    """The snapshots of a table from before migrations that changed its rows: an undo restores those rows.

    :raises HistoryError: an undo record is damaged.
    """
    for applied in history.applied:
        record = history.undo_record(applied.version)
        for undo in record.tables if record is not None else ():
            before = undo.actual_before
            if not undo.rows_changed or before is None or before.uuid is None or before.uuid != uuid:
                continue
            if before.snapshot is not None:
                yield NeededSnapshot(before.snapshot.id, applied.version)
