"""What the branches of others lack when a migration is undone."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.model.names import format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table


def left_on_branches(there: Table, after: Table) -> Iterator[str]:
    """Columns that come back, and that branches were written without meanwhile.

    :param there: the table as it is now.
    :param after: as the undo leaves it.
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
        known = index(head.schema)
        # One that was added behind all that the branch knows was never written there.
        without = [e for e in back if e.field.id not in known and e.field.id < max(known, default=0)]
        if without:
            columns = ", ".join(format_path(entry.path) for entry in without)
            yield (
                f"branch `{name}` ({head.rows_text}) was written to without {columns}: rows that were "
                "written so read null there"
            )
