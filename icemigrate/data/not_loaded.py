"""Data steps on tables that Spark cannot load: whatever is done to rows, it is Spark that does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.changes.base import Problem
from icemigrate.data.base import Ground, RowWork, Stage
from icemigrate.data.retype import Retype
from icemigrate.model.names import Path, format_path
from icemigrate.model.table import Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Type
from icemigrate.sql.types import not_loaded_by


def not_loaded(
    works: Sequence[RowWork], ground: Ground, there: Table | None, after: Table
) -> Iterator[Problem]:
    """What keeps Spark from the rows: each column that a ``retype`` makes, and the first of all others.

    :param there: the table as it is before the migration.
    :param after: as the migration leaves it.
    """
    tables = {
        Stage.BEFORE: there,
        Stage.WRITE: ground.table,
        Stage.AFTER: ground.table,
        Stage.SETTLED: after,
    }
    retypes = [work for work in works if isinstance(work, Retype)]
    told = set[RowWork | None]()
    for work in works:
        table = tables[work.stage]
        for path, type_ in () if table is None else not_loaded_by(table.schema):
            made_by = next((r for r in retypes if path[: len(r.temporary)] == r.temporary), None)
            if made_by in told:
                continue
            told.add(made_by)
            named = f"`{format_path(path)}` is" if made_by is None else f"`{made_by.column}` becomes"
            goes = made_by is None and after.schema.find(path) is None
            yield _problem(ground, made_by or work, type_, named, path if goes else None)


def _problem(ground: Ground, work: RowWork, type_: Type, named: str, dropped: Path | None) -> Problem:
    hint = "change the rows by a job of your own in another engine, between two migrations"
    if dropped is not None:
        hint = f"drop `{format_path(dropped)}` in a migration before this one, or {hint}"
    return Problem(
        "rows-not-loaded",
        ground.declared,
        work.subject,
        "Spark does what is done to rows, and it cannot load a table with a "
        f"`{format_type(type_)}`, as {named}",
        hint,
    )
