"""Adds the position in the file to Spark's errors about data steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icemigrate.changes.change import Subject
from icemigrate.commands.project_files import load_unapplied
from icemigrate.diagnostics import Diagnostic, FilePosition, sort_key
from icemigrate.errors import CheckFailed, Mistakes, NotUnderstood, spark_condition
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.iceberg.names import TableName

if TYPE_CHECKING:
    from icemigrate.execution.failures import Failed

_NO_SUCH_TYPE = "Spark cannot load a table with a column of that type: leave that table out"
_NOT_OF_THE_EXPRESSION = {
    "GEOSPATIAL_DISABLED": "set `spark.sql.geospatial.enabled: true` under `spark.conf` of the environment",
    "Spark does not support ": _NO_SUCH_TYPE,
    "ST_INVALID_CRS_VALUE": _NO_SUCH_TYPE,
}
"""Hints for errors outside the expression, by Spark's message."""


@contextmanager
def locate_data_step_errors(session: EnvironmentSession) -> Iterator[None]:
    """A block whose errors about data steps get the position in the file.

    :raises Mistakes: Spark cannot run data steps; all of them are reported.
    :raises Failed: a data step failed on the rows.
    """
    from icemigrate.execution.failures import Failed

    try:
        yield
    except NotUnderstood as error:
        raise _mistakes(session, error) from error
    except Failed as error:
        place = _of_failed(session, error)
        if place is not None:
            error.message = f"{place}: {error.message}"
        raise


def _mistakes(session: EnvironmentSession, error: NotUnderstood) -> Mistakes:
    file = _file(session, error.version)
    found = (
        Diagnostic(
            "sql-not-understood",
            f"{one.what}: {one.why}",
            _entry_position(file, TableName.parse(one.table), one.subject),
            next((hint for cause, hint in _NOT_OF_THE_EXPRESSION.items() if cause in one.why), error.hint),
        )
        for one in error.refused_steps
    )
    return Mistakes(
        tuple(sorted(found, key=sort_key)),
        f"Spark rejects a data step of migration {error.version}; no table was changed",
    )


def _of_failed(session: EnvironmentSession, error: Failed) -> FilePosition | None:
    """The position of the data step whose statement failed.

    ``None`` for other statements, or where the cause is neither its SQL nor the rows.
    """
    if not isinstance(error.cause, CheckFailed) and spark_condition(error.cause.message) is None:
        return None
    failed = error.report.failed_statement
    if failed is None or failed.data_step is None or failed.table is None:
        return None
    subject = failed.data_step.work.failure_subject(error.cause)
    return _entry_position(_file(session, error.report.version), failed.table, subject)


def _file(session: EnvironmentSession, version: str) -> MigrationFile | None:
    files = load_unapplied(session.project, session.history().applied).files
    return next((f for f in files if isinstance(f, MigrationFile) and f.version.text == version), None)


def _entry_position(file: MigrationFile | None, table: TableName, subject: Subject) -> FilePosition | None:
    entry = None if file is None else file.entry_of(table)
    return None if entry is None else entry.place_of(subject)
