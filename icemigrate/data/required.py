"""Columns that are filled and required at once: every file must be written again, or none can be read.

Iceberg fails on a file that lacks a required field ("Missing required field"), whatever its rows would hold,
and an ``UPDATE`` writes only the files again that hold a row to change, by copy-on-write.  So such a column
is optional until its rows are published, and before that they are asked whether a null is left in it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from icemigrate.changes.base import Problem, Subject
from icemigrate.data.backfill import Backfill
from icemigrate.data.base import Ask, Ground, RowWork
from icemigrate.data.retype import Retype
from icemigrate.frozen import Frozen
from icemigrate.model.names import Path, format_path
from icemigrate.model.row_modes import MERGE_ON_READ, UPDATE_MODE, leaves_files
from icemigrate.model.schema import Entry, index
from icemigrate.model.table import Table
from icemigrate.sql.names import path_sql
from icemigrate.sql.nulls import null_sql


class Filled(Frozen):
    """What data steps fill.

    :param whole: what they set.
    :param made: the structs around that, which are made where they are null.
    """

    whole: frozenset[Path]
    made: frozenset[Path] = frozenset()

    def has(self, entry: Entry, there: Container[int]) -> bool:
        """Whether a field gets a value in every row that is written: what is set whole brings along what is
        in it, which counts where a file may have the one without the other.

        :param there: the ids of the fields that were there before.
        """
        path = entry.path
        if path in self.whole or path in self.made:
            return True
        return entry.parent in there and any(path[:depth] in self.whole for depth in range(1, len(path)))


def filled(works: Sequence[RowWork]) -> Filled:
    """What is filled where it stands."""
    paths = frozenset(path for work in works if isinstance(work, Backfill) for path in work.paths)
    return Filled(paths, frozenset(path[:depth] for path in paths for depth in range(1, len(path))))


def asked_of(
    works: Sequence[RowWork], ground: Ground, after: Table, rows: str
) -> Mapping[int, tuple[Ask, ...]]:
    """Whether a null is left in what becomes required: the questions that come behind a work, by its place.

    A column that is retyped, and was required as it was, is asked about anyway.

    :param after: the table as the migration leaves it.
    :param rows: the branch, as SQL names it.
    """
    last: dict[Path, tuple[int, Path]] = {}
    inside: dict[int, int] = {}
    for at, work in enumerate(works):
        if isinstance(work, Retype) and not _is_required(ground.table, work.path):
            last[work.path] = at, work.temporary
        if isinstance(work, Backfill):
            last |= {path: (at, path) for path in work.paths}
            inside |= {i: at for path in work.paths for i in _made_required(ground.table, after, path)}
    found: dict[int, tuple[Ask, ...]] = {}
    for path, (at, here) in last.items():
        if _is_required(after, path) and not _is_required(ground.table, here):
            above = (here[:n] for n in range(1, len(here)) if not _is_required(after, path[:n]))
            conditions = [
                *(f"{path_sql(struct)} IS NOT NULL" for struct in above),
                f"{path_sql(here)} IS NULL",
            ]
            found[at] = (*found.get(at, ()), _question(rows, path, " AND ".join(conditions)))
    for field_id, at in inside.items():
        path = index(after.schema)[field_id].path
        if path not in last:
            condition = null_sql(ground.table.schema, field_id)
            found[at] = (*found.get(at, ()), _question(rows, path, condition))
    return found


def _made_required(before: Table, after: Table, struct: Path) -> Iterator[int]:
    """What becomes required in a struct that is set whole."""
    between = index(before.schema)
    for field_id, entry in index(after.schema).items():
        is_inside = len(entry.path) > len(struct) and entry.path[: len(struct)] == struct
        if (
            is_inside
            and entry.field.required
            and field_id in between
            and not between[field_id].field.required
        ):
            yield field_id


def _question(rows: str, path: Path, condition: str) -> Ask:
    name = f"rows without a value of {format_path(path)}, which becomes required"
    query = f"SELECT count(*) FROM {rows} WHERE {condition}"
    return Ask(query, "0", name, "give these rows a value, or leave it optional")


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
        if any(path == between[field_id].path[: len(path)] for path in filled(works).whole):
            may_be_null = []  # what is around is written in every row
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
            # What sets a field of a struct makes the struct, and what sets the struct what is in it.
            inside = [p for p in work.paths if p[: len(meanwhile)] == meanwhile or p == meanwhile[: len(p)]]
            if inside:
                yield work.subject, work.where is not None and not any(map(work.leaves_values_alone, inside))


def _why(table: Table, fills: Sequence[tuple[Subject, bool]], may_be_null: Sequence[Path]) -> str | None:
    """Why a file may stay as it is; ``None`` where all are written again, or nothing is filled."""
    if not fills:
        return None
    if leaves_files(table.properties):
        return f"`{UPDATE_MODE}` is {MERGE_ON_READ}, which leaves the files that are there"
    if may_be_null:
        return f"files in which `{format_path(may_be_null[-1])}` is always null are not written again"
    if all(is_partial for _, is_partial in fills):
        return "files in which no row fits the condition are not written again"
    return None
