"""Columns that become required while files lack them, found in manifests while a plan is made.

Iceberg fails on a file that lacks a required field, whatever its rows would hold.  Where manifests do not
tell, the rows are asked when the plan is applied (:mod:`icemigrate.data.every_value`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from icemigrate.changes.base import Problem
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.rename_table import RenameTable
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.data.every_value import filled_by
from icemigrate.frozen import replace
from icemigrate.model.names import format_path
from icemigrate.plan import MigrationPlan, TablePlan
from icemigrate.undo import leaves

if TYPE_CHECKING:
    from icemigrate.catalog.port import Catalog
    from icemigrate.model.names import Path, TableName
    from icemigrate.model.table import Table


def with_lacking_refused(
    migrations: Sequence[MigrationPlan], actual: Mapping[TableName, Table | None], catalog: Catalog
) -> tuple[MigrationPlan, ...]:
    """The plans, and with each table the columns that cannot be required, since files lack them.

    Manifests are read for tables of which a column becomes required, and that no earlier migration fills.

    :param actual: the catalog's tables by their name there.
    """
    now: dict[TableName, TableName | None] = {}
    done = list[MigrationPlan]()
    for migration in migrations:
        problems = list(migration.problems)
        for table in migration.tables:
            name = now.pop(table.name, table.name)
            there = None if name is None else actual.get(name)
            if there is not None and there.has_rows:
                problems += _lacking(table, there, catalog)
            # What is in the files when rows were written is known when it is written.
            known = None if any(planned.work.writes for planned in table.rows) else name
            now[_later(table)] = known
        done.append(replace(migration, problems=tuple(problems)))
    return tuple(done)


def _later(table: TablePlan) -> TableName:
    renames = (c.change.new for c in table.changes() if isinstance(c.change, RenameTable))
    return next(renames, table.name)


def _lacking(table: TablePlan, there: Table, catalog: Catalog) -> Iterator[Problem]:
    filled = filled_by([planned.work for planned in table.rows])
    changes = [c.change for c in table.changes()]
    made = {
        c.field_id: c.path
        for c in changes
        if isinstance(c, MakeRequired) and c.path not in filled and there.schema.by_id(c.field_id) is not None
    }
    # A column that comes back is in the files that were written while it was there.
    back = {c.field.id: c.path for c in changes if isinstance(c, RestoreColumn) and c.is_missed}
    made |= back
    wanted = table.wanted if back else there
    assert wanted is not None, "a column comes back to a table that stays"
    found = catalog.held(there.name, {i: leaves(wanted, i) for i in made}) if made else None
    for field_id, share in (found or {}).items():
        if lacking := share.total - share.held - share.unknown:
            rows = "1 row stands" if lacking == 1 else f"{lacking} rows stand"
            yield _problem(table, made[field_id], f"{rows} in files that lack it")


def _problem(table: TablePlan, path: Path, why: str) -> Problem:
    name = format_path(path)
    return Problem(
        "required-not-in-every-file",
        table.declared,
        ("columns", name, "required"),
        f"`{name}` cannot be required: {why}, and a file that lacks a required field cannot be read",
        "leave it optional until all files were written again with it, as by a `backfill` of every row in an "
        "earlier migration",
    )
