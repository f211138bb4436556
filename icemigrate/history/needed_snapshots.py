"""The snapshots of tables that the undo of migrations reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen
from icemigrate.history.history_properties import History


class NeededSnapshot(Frozen):
    """A snapshot that an undo reads.

    :param version: the migration.
    """

    snapshot_id: int
    version: Version


def snapshots_with_last_copies(history: History) -> Mapping[str, Sequence[NeededSnapshot]]:
    """The snapshots with values that a rollback left there, and that are nowhere else, by the table's UUID.

    :raises HistoryError: an undo record is damaged.
    """
    found = dict[str, list[NeededSnapshot]]()
    for applied, record in history.with_last_copies():
        for undo in record.tables:
            before = undo.actual_before
            if before is not None and before.uuid is not None and undo.last_copies:
                needed = (NeededSnapshot(copy.snapshot_id, applied.version) for copy in undo.last_copies)
                found.setdefault(before.uuid, []).extend(needed)
    return found


def snapshots_before_row_changes(history: History) -> Mapping[str, Sequence[NeededSnapshot]]:
    """The snapshots from before migrations that changed rows, which an undo restores, by the table's UUID.

    :raises HistoryError: an undo record is damaged.
    """
    found = dict[str, list[NeededSnapshot]]()
    for applied in history.applied:
        record = history.undo_record(applied.version)
        for undo in record.tables if record is not None else ():
            before = undo.actual_before if undo.rows_changed else None
            if before is not None and before.uuid is not None and before.snapshot is not None:
                needed = NeededSnapshot(before.snapshot.id, applied.version)
                found.setdefault(before.uuid, []).append(needed)
    return found
