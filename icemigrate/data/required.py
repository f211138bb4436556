"""Columns that are filled and required at once: every file must be written again, or none can be read.

Iceberg fails on a file that lacks a required field ("Missing required field"), whatever its rows would hold,
and an ``UPDATE`` writes only the files again that hold a row to change, by copy-on-write.  So such a column
is optional until its rows are published, and before that they are asked whether a null is left in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from icemigrate.changes.base import Problem, Subject
from icemigrate.data.backfill import Backfill
from icemigrate.data.base import Ask, Ground, RowWork
from icemigrate.data.retype import Retype
from icemigrate.model.names import Path, format_path
from icemigrate.model.row_modes import MERGE_ON_READ, UPDATE_MODE
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.sql.names import path_sql


def filled(works: Sequence[RowWork]) -> frozenset[Path]:
    """What is filled where it stands, with the structs around it."""
    paths = (path for work in works if isinstance(work, Backfill) for path in work.paths)
    return frozenset(path[:depth] for path in paths for depth in range(1, len(path) + 1))


def asked_of(
    works: Sequence[RowWork], ground: Ground, after: Table, rows: str
) -> Mapping[int, tuple[Ask, ...]]:
    """Whether a null is left in what becomes required: the questions that come behind a work, by its place.

    A column that is retyped, and was required as it was, is asked about anyway.

    :param after: the table as the migration leaves it.
    :param rows: the branch, as SQL names it.
    """
    last: dict[Path, tuple[int, Path]] = {}
    for at, work in enumerate(works):
        if isinstance(work, Retype) and not _is_required(ground.table, work.path):
            last[work.path] = at, work.temporary
        if isinstance(work, Backfill):
            last |= {path: (at, path) for path in work.paths}
    found: dict[int, tuple[Ask, ...]] = {}
    for path, (at, here) in last.items():
        if _is_required(after, path) and not _is_required(ground.table, here):
            above = (here[:n] for n in range(1, len(here)) if not _is_required(after, path[:n]))
            conditions = [
                *(f"{path_sql(struct)} IS NOT NULL" for struct in above),
                f"{path_sql(here)} IS NULL",
            ]
            name = f"rows without a value of {format_path(path)}, which becomes required"
            query = f"SELECT count(*) FROM {rows} WHERE {' AND '.join(conditions)}"
            question = Ask(query, "0", name, "give these rows a value, or leave it optional")
            found[at] = (*found.get(at, ()), question)
    return found


def left_in_files(works: Sequence[RowWork], ground: Ground, there: Table, after: Table) -> Iterator[Problem]:
    """Required fields that a file may lack when a migration is done: it does not fill them in every one.

    Of one that is there already, and is not filled, manifests and rows tell.

    :param there: the table as it is before the migration, rows and all.
    :param after: as the migration leaves it.
    """
    before, between = index(there.schema), index(ground.table.schema)
    for field_id, entry in index(after.schema).items():
        field, old = entry.field, before.get(field_id)
        is_new = field.required and (old is None or not old.field.required)
        if not is_new or field.initial_default is not None or field_id not in between:
            continue
        fills = list(_fills(works, entry.path, between[field_id].path))
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


def _fills(works: Sequence[RowWork], path: Path, meanwhile: Path) -> Iterator[tuple[Subject, bool]]:
    """Where the file fills a field, and whether it does so in some rows alone.

    :param path: of the field in the end.
    :param meanwhile: of the same field while rows are written.
    """
    for work in works:
        if isinstance(work, Retype) and work.path == path:
            yield work.subject, False
        if isinstance(work, Backfill):
            # What sets a field of a struct makes the struct.
            inside = [p for p in work.paths if p[: len(meanwhile)] == meanwhile]
            if inside:
                yield work.subject, work.where is not None and not any(map(work.leaves_values_alone, inside))


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
