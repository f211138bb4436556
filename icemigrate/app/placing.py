"""What Spark has against a data step, told where it stands in the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icemigrate.app.opening import load_unapplied
from icemigrate.app.world import Opened
from icemigrate.changes.base import Subject
from icemigrate.declare.migration import MigrationFile
from icemigrate.diagnostics import Diagnostic, Place, sort_key
from icemigrate.errors import CheckFailed, Mistakes, NotUnderstood
from icemigrate.model.names import TableName
from icemigrate.plan import Plan

if TYPE_CHECKING:
    from icemigrate.executor import Failed

_OF_SQL = "["
"""How all begins that Spark has against SQL and the values in it: ``[DIVIDE_BY_ZERO] …``."""

_NO_SUCH_TYPE = "Spark cannot load a table with a column of that type: leave that table out"
_NOT_OF_THE_EXPRESSION = {
    "GEOSPATIAL_DISABLED": "write `spark.sql.geospatial.enabled: true` under `spark.conf` of the environment",
    "Spark does not support ": _NO_SUCH_TYPE,
    "ST_INVALID_CRS_VALUE": _NO_SUCH_TYPE,
}
"""What to do where it is not the expression that is wrong, by what Spark says."""


@contextmanager
def placed(world: Opened, plan: Plan) -> Iterator[None]:
    """Whatever Spark has against a data step in the block is told with its place.

    :raises Mistakes: Spark would not run data steps; all of them are told.
    :raises Failed: a data step failed on the rows.
    """
    from icemigrate.executor import Failed

    try:
        yield
    except NotUnderstood as error:
        raise _mistakes(world, error) from error
    except Failed as error:
        place = _of_failed(world, plan, error)
        if place is not None:
            error.message = f"{place}: {error.message}"
        raise


def _mistakes(world: Opened, error: NotUnderstood) -> Mistakes:
    file = _file(world, error.version)
    found = (
        Diagnostic(
            "sql-not-understood",
            f"{one.what}: {one.why}",
            _place(file, TableName.parse(one.table), one.subject),
            next((hint for cause, hint in _NOT_OF_THE_EXPRESSION.items() if cause in one.why), error.hint),
        )
        for one in error.found
    )
    return Mistakes(
        tuple(sorted(found, key=sort_key)),
        f"Spark would not run what migration {error.version} does to rows; nothing of it was done, "
        "nor of those before it",
    )


def _of_failed(world: Opened, plan: Plan, error: Failed) -> Place | None:
    """Where the data step stands whose statement failed; ``None`` where it was no data step's, or where
    something else than its SQL and the rows is the cause."""
    if not isinstance(error.cause, CheckFailed) and not error.cause.message.startswith(_OF_SQL):
        return None
    for migration in plan.migrations:
        if migration.version != error.report.version:
            continue
        for table in migration.tables:
            for planned in table.rows:
                if error.failed in (statement.text for statement in planned.statements):
                    subject = planned.work.place_of(error.cause.message)
                    return _place(_file(world, migration.version), table.declared, subject)
    return None


def _file(world: Opened, version: str) -> MigrationFile | None:
    files = load_unapplied(world.project, world.history().applied).files
    return next((f for f in files if isinstance(f, MigrationFile) and f.version.text == version), None)


def _place(file: MigrationFile | None, table: TableName, subject: Subject) -> Place | None:
    entry = None if file is None else file.entry_of(table)
    return None if entry is None else entry.place_of(subject)
