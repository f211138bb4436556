"""Data steps on tables that Spark cannot load, although only Spark changes rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.changes.change import PlanProblem
from icemigrate.data_steps.data_step_kind import DataStepContext, DataStepStage, TableDataStep
from icemigrate.data_steps.retype import Retype
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Type
from icemigrate.spark_sql.type_sql import not_loaded_by


def unloadable_table_problems(
    works: Sequence[TableDataStep], context: DataStepContext, there: Table | None, after: Table
) -> Iterator[PlanProblem]:
    """Columns that prevent Spark from loading the table: each one that a ``retype`` makes, and the first
    other.

    :param there: the table before the migration.
    :param after: the table after the migration.
    """
    tables = {
        DataStepStage.BEFORE: there,
        DataStepStage.WRITE: context.table,
        DataStepStage.AFTER: context.table,
        DataStepStage.AFTER_PUBLICATION: after,
    }
    retypes = [work for work in works if isinstance(work, Retype)]
    reported = set[TableDataStep | None]()
    for work in works:
        table = tables[work.stage]
        for path, type_ in () if table is None else not_loaded_by(table.schema):
            made_by = next((r for r in retypes if path[: len(r.temporary)] == r.temporary), None)
            if made_by in reported:
                continue
            reported.add(made_by)
            named = f"`{format_path(path)}` is" if made_by is None else f"`{made_by.column}` becomes"
            goes = made_by is None and after.schema.find(path) is None
            yield _problem(context, made_by or work, type_, named, path if goes else None)


def _problem(
    context: DataStepContext, work: TableDataStep, type_: Type, named: str, dropped: FieldPath | None
) -> PlanProblem:
    hint = "change the rows in another engine, between two migrations"
    if dropped is not None:
        hint = f"drop `{format_path(dropped)}` in an earlier migration, or {hint}"
    return PlanProblem(
        "rows-not-loaded",
        context.declared,
        work.subject,
        f"data steps need Spark, which cannot load a table with a `{format_type(type_)}`: {named} one",
        hint,
    )
