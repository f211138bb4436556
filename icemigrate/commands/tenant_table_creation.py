"""Creates the tables of tenants that appear in a log, from the migrations that declare such tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from icemigrate.commands.apply import apply, require_ready
from icemigrate.commands.list_values import load_with_list_values
from icemigrate.commands.plan import plan_in_environment
from icemigrate.errors import ConflictError, IcemigrateError, Mistakes
from icemigrate.execution.environment_session import open_environment
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.created_tables import CreatedTables
from icemigrate.planning.plan import Plan
from icemigrate.project import Project
from icemigrate.table_data.table_session import TableSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCK_TIMEOUT_S = 10.0
"""A batch does not wait for a long migration: its entries are deferred, and a later batch tries again."""


class TenantTableCreation:
    """Extends the migrations of an environment to tenants whose tables are missing.

    :param session: of the run that drains the log.
    :param spark: its Spark, for migrations that change rows.
    """

    def __init__(self, project: Project, session: TableSession, spark: SparkSession) -> None:
        environment = session.environment.environment
        apply_with = environment.apply_with or "auto"
        self._project = dataclasses.replace(project, apply_with=apply_with)
        self._environment, self._session, self._spark = environment.name, session, spark

    def __call__(self, failed: Sequence[TableBatch]) -> CreatedTables:
        """Create the missing ones of the tables that took no entries.

        The tables of a tenant whose migrations cannot be applied do not prevent those of the others.
        """
        missing = [
            table for table in failed if table.tenant and table.table and self._is_missing(table.table)
        ]
        tenants = sorted({table.tenant for table in missing if table.tenant})
        created, problems = self._create(tenants) if tenants else ((), {})
        reasons = {table.table: problems[table.tenant] for table in missing if table.tenant in problems}
        return CreatedTables(created, reasons)

    def _is_missing(self, name: str) -> bool:
        return self._session.find(self._session.parse(name)) is None

    def _create(self, tenants: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """The names of the new tables, and the reason for each tenant that has none."""
        try:
            return self._extend(tenants), {}
        except (Mistakes, ConflictError) as error:
            if len(tenants) == 1:
                return (), {tenants[0]: _reason(error)}
        except IcemigrateError as error:
            return (), dict.fromkeys(tenants, _reason(error))
        created, problems = list[str](), dict[str, str]()
        for tenant in tenants:
            names, reasons = self._create([tenant])
            created += names
            problems |= reasons
        return tuple(created), problems

    def _extend(self, tenants: Sequence[str]) -> tuple[str, ...]:
        """Apply the migrations to new tenants, as `apply` does; the names of the new tables."""
        with open_environment(self._project, self._environment) as session:
            history = session.history()
            if not any(applied.list_values for applied in history.applied):
                return ()
            session, loaded = load_with_list_values(session, history, seen=tenants)
            result = plan_in_environment(session, history, loaded.files, only_extends=True)
        plan = result.plan
        if plan.is_empty:
            return ()
        require_ready(result)
        apply(self._project, plan, spark=self._spark, lock_timeout_s=_LOCK_TIMEOUT_S)
        return _new_tables(plan)


def _new_tables(plan: Plan) -> tuple[str, ...]:
    tables = (table for migration in plan.migrations for table in migration.tables)
    return tuple(sorted({str(t.declared) for t in tables if t.formerly is None and t.wanted is not None}))


def _reason(error: IcemigrateError) -> str:
    """The first line of an error, or of the first error in files."""
    if isinstance(error, Mistakes) and error.diagnostics:
        return error.diagnostics[0].message
    return error.message.splitlines()[0]
