"""What of a migration needs Spark: rows, data files and views, which no commit of metadata changes."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.change import Change, ChangePhase
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.keep_view import KeptViewChange
from icemigrate.changes.rename_table import RenameTable
from icemigrate.planning.plan import MigrationPlan, TablePlan


def spark_requirements(migration: MigrationPlan) -> tuple[str, ...]:
    """The parts of a migration that need Spark, each as a phrase with its table; none for pure metadata."""
    return tuple(dict.fromkeys(part for table in migration.tables for part in _of_table(table)))


def renames(migration: MigrationPlan) -> tuple[str, ...]:
    """The renames of a migration, also those into the trash; they need Spark where the catalog has none."""
    return tuple(
        f"`{table.declared}`: {planned.change.describe()}"
        for table in migration.tables
        for planned in table.changes()
        if isinstance(planned.change, (RenameTable, DropTable))
    )


def _of_table(table: TablePlan) -> Iterator[str]:
    for planned in table.rows:
        yield f"`{table.declared}`: {' '.join(planned.text.split())}"
    for change in (planned.change for planned in table.changes()):
        if _is_of_rows(change) or isinstance(change, KeptViewChange):
            yield f"`{table.declared}`: {change.describe()}"


def _is_of_rows(change: Change) -> bool:
    return change.phase is ChangePhase.ROWS
