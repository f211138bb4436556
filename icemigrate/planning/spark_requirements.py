"""What of a migration needs Spark: rows, data files and views, which no commit of metadata changes.

Renames need it on catalogs without one, which only Spark imitates.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.change import Change, ChangePhase
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.keep_view import KeptViewChange
from icemigrate.changes.rename_table import RenameTable
from icemigrate.planning.plan import MigrationPlan, TablePlan


def spark_requirements(migration: MigrationPlan, *, renames: bool = False) -> tuple[str, ...]:
    """The parts of a migration that need Spark, each as a phrase with its table; none for pure metadata.

    :param renames: whether renames need it, also those into the trash.
    """
    return tuple(dict.fromkeys(part for table in migration.tables for part in _of_table(table, renames)))


def _of_table(table: TablePlan, renames: bool) -> Iterator[str]:
    for planned in table.rows:
        yield f"`{table.declared}`: {' '.join(planned.text.split())}"
    for change in (planned.change for planned in table.changes()):
        is_rename = renames and isinstance(change, (RenameTable, DropTable))
        if is_rename or _is_of_rows(change) or isinstance(change, KeptViewChange):
            yield f"`{table.declared}`: {change.describe()}"


def _is_of_rows(change: Change) -> bool:
    return change.phase is ChangePhase.ROWS
