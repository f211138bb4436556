"""Columns that an undo cannot take away: format version 1 keeps a dropped partition field as a void one.

Specification, "Partition Evolution": in version 1 partition fields keep their places, so one that goes is
replaced by a void transform of the same source.  Without its source Iceberg writes no row any more.
"""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.model.names import format_path
from icemigrate.model.partitioning import VOID, PartitionField
from icemigrate.model.schema import Entry, index
from icemigrate.model.table import Table


def needed_by_voids(before: Table, after: Table, there: Table) -> dict[int, str]:
    """The fields that the migration added, and that have to stay: by id, each with the reason.

    :param before: the migration's own difference, as :func:`icemigrate.undo.own.own` has it.
    :param there: the table as it is now.
    """
    old, new, now = index(before.schema), index(after.schema), index(there.schema)
    kept: dict[int, str] = {}
    for field in there.spec.fields:
        source = field.source_ids[0]
        if (
            source in old
            or source not in new
            or source not in now
            or not _stays_void(field, before, after, there)
        ):
            continue
        top = _topmost_added(source, old, new)
        kept[top] = (
            f"stays: {format_path(now[top].path)}; format version 1 keeps the partition field `{field.name}` "
            "as a void one, and without its source no row could be written"
        )
    return kept


def _stays_void(field: PartitionField, before: Table, after: Table, there: Table) -> bool:
    if field.transform == VOID:
        return True
    added = {f.definition for f in after.spec.live} - {f.definition for f in before.spec.live}
    return there.format_version == 1 and field.definition in added


def _topmost_added(field_id: int, old: Mapping[int, Entry], new: Mapping[int, Entry]) -> int:
    parent = new[field_id].parent
    return field_id if parent is None or parent in old else _topmost_added(parent, old, new)
