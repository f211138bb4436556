"""Columns that are filled and required at once: every file must be written again, or none can be read.

Iceberg fails on a file that lacks a required field ("Missing required field"), whatever its rows would hold,
and an ``UPDATE`` writes only the files again that hold a row to change, by copy-on-write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.changes.base import Problem, Subject
from icemigrate.data.backfill import Backfill
from icemigrate.data.base import Ground, RowWork
from icemigrate.data.retype import Retype
from icemigrate.model.names import Path, format_path
from icemigrate.model.row_modes import MERGE_ON_READ, UPDATE_MODE
from icemigrate.model.schema import index
from icemigrate.model.table import Table


def left_in_files(works: Sequence[RowWork], ground: Ground, there: Table, after: Table) -> Iterator[Problem]:
    """Required fields that a file may lack when a migration is done: it does not fill them in every one.

    Of one that is there already, and is not filled, manifests and rows tell.

    :param there: the table as it is before the migration, rows and all.
    :param after: as the migration leaves it.
    """
    before, filled = index(there.schema), index(ground.table.schema)
    for field_id, entry in index(after.schema).items():
        field, old = entry.field, before.get(field_id)
        is_new = field.required and (old is None or not old.field.required)
        if not is_new or field.initial_default is not None or field_id not in filled:
            continue
        fills = list(_fills(works, entry.path, filled[field_id].path))
        may_be_null = [p for n in range(1, len(entry.path)) if not _is_required(after, p := entry.path[:n])]
        reason = _why(there, fills, may_be_null)
        if (
            not fills
            and there.has_rows
            and field_id > there.last_column_id
            and (entry.parent is None or entry.parent in before)
        ):
            reason = "no file that is there holds it"
        if reason is not None:
            yield Problem(
                "required-not-in-every-file",
                ground.declared,
                fills[0][0] if fills else ("columns", format_path(entry.path), "required"),
                f"`{format_path(entry.path)}` cannot be required from the start: {reason}, and a file that "
                "lacks a required field cannot be read",
                "declare it with `required: false`, and make it required in a later migration, when all "
                "files were written again",
            )


def _is_required(table: Table, path: Path) -> bool:
    field = table.schema.find(path)
    return field is not None and field.required


def _fills(works: Sequence[RowWork], path: Path, filled: Path) -> Iterator[tuple[Subject, bool]]:
    """Where the file fills a field, and whether it does so in some rows alone.

    :param path: of the field in the end.
    :param filled: of the same field while rows are written.
    """
    for work in works:
        if isinstance(work, Retype) and work.path == path:
            yield work.subject, False
        if isinstance(work, Backfill) and filled in work.paths:
            yield work.subject, work.where is not None


def _why(table: Table, fills: Sequence[tuple[Subject, bool]], may_be_null: Sequence[Path]) -> str | None:
    """Why a file may stay as it is; ``None`` where all are written again, or nothing is filled."""
    if not fills:
        return None
    if table.properties.get(UPDATE_MODE, "").lower() == MERGE_ON_READ:
        return f"`{UPDATE_MODE}` is {MERGE_ON_READ}, which leaves the files that are there"
    if may_be_null:
        return f"files in which `{format_path(may_be_null[-1])}` is always null are not written again"
    if all(is_partial for _, is_partial in fills):
        return "files in which no row fits the condition are not written again"
    return None
