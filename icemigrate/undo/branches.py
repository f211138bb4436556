"""What the branches of others lack when a migration is undone."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.model.names import format_path
from icemigrate.model.schema import Entry, Schema, index
from icemigrate.model.table import Table


def left_on_branches(there: Table, after: Table, then: Table | None) -> Iterator[str]:
    """Columns that come back, and that branches were written without meanwhile.

    :param there: the table as it is now.
    :param after: as the undo leaves it.
    :param then: as it was before the migration, where that is recorded.
    """
    now = index(there.schema)
    back = [
        entry
        for field_id, entry in index(after.schema).items()
        if field_id not in now and (entry.parent is None or entry.parent in now)
    ]
    for name, head in sorted(there.heads.items()) if back else ():
        if head.schema is None or name not in after.refs or not head.has_rows:
            continue
        since = then is not None and _is_written_since(name, there, then)
        without = [e for e in back if _is_gone(e, head.schema, then.schema if since and then else None)]
        if without:
            columns = ", ".join(format_path(entry.path) for entry in without)
            yield (
                f"branch `{name}` ({head.rows_text}) was written to without {columns}: rows that were "
                f"written so read {_read(without)} there"
            )


def _is_gone(entry: Entry, known: Schema, then: Schema | None) -> bool:
    """Whether a column had been there when the newest snapshot of a branch was written, and was not any more.

    :param known: the schema of that snapshot.
    :param then: the table's from before it; ``None`` where nothing tells.  A column with a lower id than
        others that the snapshot knows was there before them even so.
    """
    if known.by_id(entry.field.id) is not None:
        return False
    was_there = then is not None and then.by_id(entry.field.id) is not None
    return was_there or entry.field.id < max(index(known), default=0)


def _is_written_since(name: str, there: Table, then: Table) -> bool:
    """Whether a branch got its newest snapshot after the table was as it was recorded."""
    if name in then.refs:
        return then.refs[name].snapshot_id != there.refs[name].snapshot_id
    return then.snapshot is None or there.heads[name].snapshot.timestamp_ms > then.snapshot.timestamp_ms


def _read(without: list[Entry]) -> str:
    """What files without these columns give for them."""
    has_default = [entry.field.initial_default is not None for entry in without]
    if not any(has_default):
        return "null"
    return "the default" if all(has_default) else "null, or the default of those that have one,"
