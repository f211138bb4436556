"""The stages of a migration: its statements in running order, for renderers, saved plans and the executor.

Checks that must pass before any change run for all tables.  Then come the metadata changes that rows
need, and the rows on their branches.  When all tables are ready, rows are published and the remaining
metadata changes are made: no reader sees rows of a migration one of whose checks fails.  Statements on
published tables run last, since an undo after a failure needs the values in the old files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from icemigrate.changes.change import DeferredStatement, MetadataCommit, SqlStatement, Statement
from icemigrate.changes.rename_table import RenameTable
from icemigrate.data_steps.data_step_kind import DataStatement, DataStepStage, QueryExpectation
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.ref_names import branch_name
from icemigrate.planning.plan import MigrationPlan, Plan, PlannedChange, PlannedDataStep, Step, TablePlan
from icemigrate.spark_sql.branch_statements import create_branch_sql, publish_branch_sql


class PlannedStatement(Frozen):
    """A statement of a migration; equal texts at two positions are two statements.

    :param number: the position in the migration, from 1; it identifies the statement.
    :param text: as it is recorded.
    :param table: the declared name; ``None`` for a namespace.
    :param data_step: the data step that it belongs to; ``None`` for other statements.
    """

    number: int
    text: str
    table: TableName | None = None
    data_step: PlannedDataStep | None = None


class Stage(Frozen):
    """A part of a migration that runs as a whole.

    :param first: the number of its first statement.
    """

    first: int

    def statements(self) -> tuple[PlannedStatement, ...]:
        """Its statements in running order."""
        return ()


class CreateNamespaces(Stage):
    """Create the namespaces of new tables."""

    namespaces: tuple[tuple[str, ...], ...]

    def statements(self) -> tuple[PlannedStatement, ...]:
        """One for each namespace."""
        texts = map(create_namespace_text, self.namespaces)
        return tuple(PlannedStatement(number, text) for number, text in enumerate(texts, self.first))


class DropNamespaces(Stage):
    """Drop the namespaces that are empty after an undo."""

    namespaces: tuple[tuple[str, ...], ...]

    def statements(self) -> tuple[PlannedStatement, ...]:
        """One for each namespace."""
        texts = map(drop_namespace_text, self.namespaces)
        return tuple(PlannedStatement(number, text) for number, text in enumerate(texts, self.first))


class TableStage(Stage):
    """A stage of one table: the statement about its branch, then its data steps, then its steps.

    :ivar heading: when it runs, where statements of other tables may run between it and the one before.
    """

    table: TablePlan
    steps: tuple[Step, ...] = ()
    data_steps: tuple[PlannedDataStep, ...] = ()
    branch_statement: SqlStatement | None = None
    heading: ClassVar[str] = ""

    @property
    def first_of_steps(self) -> int:
        """The number of the first statement of its steps."""
        return self.first + len(self.row_statements)

    @property
    def row_statements(self) -> tuple[DataStatement, ...]:
        """The statements about rows and their branch."""
        branch = () if self.branch_statement is None else (self.branch_statement,)
        return (*branch, *(statement for step in self.data_steps for statement in step.statements))

    def numbered_data_steps(self) -> Iterator[tuple[int, PlannedDataStep]]:
        """Its data steps, each with the number of its first statement."""
        number = self.first + (self.branch_statement is not None)
        for data_step in self.data_steps:
            yield number, data_step
            number += len(data_step.statements)

    def changes(self) -> Iterator[PlannedDataStep | PlannedChange]:
        """Its data steps and changes, in running order."""
        yield from self.data_steps
        for step in self.steps:
            yield from step.changes

    def statements(self) -> tuple[PlannedStatement, ...]:
        """Its statements in running order."""
        by_number = {
            number: data_step
            for first, data_step in self.numbered_data_steps()
            for number in range(first, first + len(data_step.statements))
        }
        texts = [statement.text for statement in self.row_statements]
        texts += [statement.text for step in self.steps for statement in step.statements]
        return tuple(
            PlannedStatement(number, text, self.table.declared, by_number.get(number))
            for number, text in enumerate(texts, self.first)
        )


class CheckPreconditions(TableStage):
    """Run the checks that must pass before the migration changes anything."""

    heading: ClassVar[str] = "before everything else in the migration"


class ChangeTable(TableStage):
    """Make the changes of a table; where a data step follows, only those that its rows need."""


class WriteRows(TableStage):
    """Write rows on a branch and check them there; without rows to write, check the table itself."""


class RecheckRows(Stage):
    """Write and check rows again where another client wrote to their table meanwhile."""


class PublishTable(TableStage):
    """Publish the rows of a table and make its remaining changes."""

    heading: ClassVar[str] = "when the checks of all tables pass"


class RewriteFiles(TableStage):
    """Run the data steps that work on the published table."""

    heading: ClassVar[str] = "after all tables of the migration"


def create_namespace_text(namespace: tuple[str, ...]) -> str:
    """The statement that creates a namespace."""
    return f"create namespace {format_path(namespace)}"


def drop_namespace_text(namespace: tuple[str, ...]) -> str:
    """The statement that drops a namespace."""
    return f"drop namespace {format_path(namespace)}"


def shown_statement(statement: Statement | DataStatement) -> str:
    """A statement as a plan shows it: SQL ends with a semicolon, a query with its expected result.

    While it runs, and in the history, it has only its ``text``.
    """
    if isinstance(statement, MetadataCommit):
        return f"(metadata commit) {statement.summary}"
    if isinstance(statement, DeferredStatement):
        return f"(at run time) {statement.summary}"
    if isinstance(statement, QueryExpectation):
        return f"{statement.text};  -- gives {'no rows' if statement.gives == '[]' else statement.gives}"
    return f"{statement.text};"


def later_name(plan: TablePlan) -> TableName:
    """The table's name in the catalog when its rows are written."""
    renames = [c.change for c in plan.changes() if isinstance(c.change, RenameTable)]
    return renames[-1].new if renames else plan.name


def plan_stages(plan: Plan, migration: MigrationPlan) -> tuple[Stage, ...]:
    """The stages of one migration of a plan, in running order."""
    return migration_stages(migration, plan.catalog_name, plan.project)


def migration_stages(migration: MigrationPlan, catalog: str, project: str) -> tuple[Stage, ...]:
    """The stages of a migration, in running order.

    :param catalog: the catalog's name in Spark SQL.
    :param project: the project's name, a part of the names of branches.
    """
    stages, first = list[Stage](), 1
    for stage in _unnumbered(migration, catalog, branch_name(project, migration.version)):
        stages.append(replace(stage, first=first))
        first += len(stage.statements())
    return tuple(stages)


class StagesOfTables:
    """The stages of each table of a migration, in running order.

    :param stages: of the migration.
    """

    def __init__(self, stages: Iterable[Stage]) -> None:
        # By identity: to hash a plan takes as long as to walk it.
        self._found = dict[int, list[TableStage]]()
        for stage in stages:
            if isinstance(stage, TableStage):
                self._found.setdefault(id(stage.table), []).append(stage)

    def of(self, table: TablePlan) -> tuple[TableStage, ...]:
        """The stages of a table; the plan is the object that the migration has."""
        return tuple(self._found.get(id(table), ()))


def statement_texts(migration: MigrationPlan, catalog: str, project: str) -> tuple[str, ...]:
    """All statements of a migration as text, in running order; see :func:`migration_stages`."""
    stages = migration_stages(migration, catalog, project)
    return tuple(statement.text for stage in stages for statement in stage.statements())


def _unnumbered(migration: MigrationPlan, catalog: str, branch: str) -> Iterator[Stage]:
    tables = migration.tables
    for table in tables:
        if checks := _of(table, DataStepStage.BEFORE):
            yield CheckPreconditions(0, table, data_steps=checks)
    if migration.create_namespaces:
        yield CreateNamespaces(0, migration.create_namespaces)
    for table in tables:
        yield ChangeTable(0, table, table.steps)
        if _has_published_rows(table):
            writes, checks = _of(table, DataStepStage.WRITE), _of(table, DataStepStage.AFTER)
            create = SqlStatement(create_branch_sql(catalog, later_name(table), branch)) if writes else None
            yield WriteRows(0, table, (), (*writes, *checks), create)
    written = [table for table in tables if _has_published_rows(table)]
    if written:
        yield RecheckRows(0)
    for table in written:
        publish = SqlStatement(publish_branch_sql(catalog, later_name(table), branch))
        is_on_branch = bool(_of(table, DataStepStage.WRITE))
        yield PublishTable(0, table, table.finish, (), publish if is_on_branch else None)
    for table in tables:
        if rewrites := _of(table, DataStepStage.AFTER_PUBLICATION):
            yield RewriteFiles(0, table, data_steps=rewrites)
    if migration.drop_namespaces:
        yield DropNamespaces(0, migration.drop_namespaces)


def _has_published_rows(plan: TablePlan) -> bool:
    return any(planned.work.stage is not DataStepStage.BEFORE for planned in plan.rows)


def _of(plan: TablePlan, stage: DataStepStage) -> tuple[PlannedDataStep, ...]:
    return tuple(planned for planned in plan.rows if planned.work.stage is stage)
