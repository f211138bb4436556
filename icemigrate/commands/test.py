"""``test``: runs the tests of migrations on catalogs in a temporary folder, with one Spark for all."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.commands.apply import apply, require_ready
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback, require_undoable, rollback
from icemigrate.commands.test_files import ReadyTest, find_tests
from icemigrate.diagnostics import format_count
from icemigrate.errors import IcemigrateError, Mistakes, os_error_reason
from icemigrate.execution.spark_start import open_engine
from icemigrate.files.read.migration_test_file import CaseRows, GeneratedRows
from icemigrate.iceberg.names import TableName
from icemigrate.project.project_values import CatalogDescription, Environment, Project, SparkConfig
from icemigrate.results.migration_test_results import CaseResult, MigrationTestsResult
from icemigrate.spark.case_rows import CaseRow, CaseTables
from icemigrate.table_data.generated_rows import insert_generated
from icemigrate.table_data.table_session import open_tables
from icemigrate.test_data.parquet_file import RowRange

if TYPE_CHECKING:
    from icemigrate.spark.spark_engine import SparkEngine

_ENVIRONMENT = "test"
_MOST_SHOWN = 20
"""How many rows one failure shows."""


def run_tests(
    project: Project,
    filters: Sequence[str] = (),
    on_start: Callable[[], None] = lambda: None,
) -> MigrationTestsResult:
    """Run the tests in the folder ``tests`` of the migrations; no environment is read or changed.

    :param filters: parts of the name of a file or a test; a test needs one of them.
    :param on_start: called before Spark is started.
    :raises UsageError: there is no test.
    :raises Mistakes: with all errors of all files.
    :raises EngineError: Java or Spark failed to start.
    """
    found = find_tests(project, filters)
    results = list[CaseResult]()
    start_ms: int | None = None
    for number, ready in enumerate(found.tests, start=1):
        with tempfile.TemporaryDirectory(prefix="icemigrate_test_") as folder:
            run = _CaseRun(project, ready, Path(folder), number)
            results.append(run.result(on_start))
            start_ms = _sum_of_known(start_ms, run.spark_start_ms)
    return MigrationTestsResult(
        project=project.name,
        cases=tuple(results),
        left_out=found.left_out,
        spark_start_ms=start_ms,
    )


def scratch_project(project: Project, folder: Path, number: int) -> Project:
    """The project with one environment, whose catalog is in a folder.

    :param number: makes the name of the catalog unique in this process.
    """
    chosen = project.environments.get(project.default_environment or "")
    environment = Environment(
        name=_ENVIRONMENT,
        catalog=CatalogDescription(
            name=f"test{number}",
            type="sqlite",
            uri=str(folder / "catalog.db"),
            warehouse=str(folder / "warehouse"),
        ),
        spark=SparkConfig(jars=None if chosen is None else chosen.spark.jars),
    )
    return dataclasses.replace(
        project,
        environments={_ENVIRONMENT: environment},
        default_environment=_ENVIRONMENT,
        nodes={},
        apply_with=None,
    )


class _CaseRun:
    """One test on its own catalog.

    :ivar spark_start_ms: how long Spark took to start; ``None`` where it was running.
    """

    def __init__(self, project: Project, ready: ReadyTest, folder: Path, number: int) -> None:
        self.ready, self.test = ready, ready.test
        self.project = scratch_project(project, folder, number)
        self.environment = self.project.environments[_ENVIRONMENT]
        self.spark_start_ms: int | None = None
        self.given_rows: dict[str, tuple[tuple[str, ...], list[CaseRow]]] = {}

    def result(self, on_start: Callable[[], None]) -> CaseResult:
        """Run the test."""
        began, failures, is_error = time.monotonic(), list[str](), False
        if self.ready.start is not None:
            # Python makes the tables before the rows; Spark applies what is tested.
            before = dataclasses.replace(self.project, apply_with="auto")
            failures += _attempt("the versions before it", lambda: self._apply(before, self.ready.start))
        if not failures:
            engine = self._open_engine(on_start)
            try:
                tables = CaseTables(engine.session, self.environment.catalog.name)
                for failure, is_step in self._steps(tables):
                    failures.append(failure)
                    is_error = is_error or is_step
                    if is_step:
                        break
            finally:
                engine.close()
        else:
            is_error = True
        return CaseResult(
            file=self.test.place.file,
            line=self.test.place.line,
            name=self.test.name,
            version=self.ready.version,
            outcome="error" if is_error else "failed" if failures else "passed",
            failures=tuple(failures),
            duration_ms=_milliseconds_since(began) - (self.spark_start_ms or 0),
        )

    def _open_engine(self, on_start: Callable[[], None]) -> SparkEngine:
        is_starting = False

        def starts() -> None:
            nonlocal is_starting
            is_starting = True
            on_start()

        began = time.monotonic()
        engine = open_engine(self.environment, None, starts)
        if is_starting:
            self.spark_start_ms = _milliseconds_since(began)
        return engine

    def _apply(self, project: Project, version: str | None) -> None:
        planned = plan(project, to=version)
        require_ready(planned)
        apply(project, planned.plan)

    def _steps(self, tables: CaseTables) -> Iterator[tuple[str, bool]]:
        """What fails, and whether it is a step that could not run."""
        yield from _as_steps(_attempt("given", lambda: self._insert(tables)))
        yield from _as_steps(_attempt("given", lambda: self._keep_given(tables)))
        yield from _as_steps(
            _attempt(f"version {self.ready.version}", lambda: self._apply(self.project, self.ready.version))
        )
        yield from self._compare(tables, self.test.expected, "expect")
        for query in self.test.queries:
            found = list[str]()

            def compare(sql: str = query.sql, rows: CaseRows = query.expected) -> None:
                found.extend(_query_failures(tables, sql, rows))  # noqa: B023 (called at once)

            yield from _as_steps(_attempt(f"the query in line {query.place.line}", compare))
            yield from ((failure, False) for failure in found)
        if self.test.rolls_back:
            yield from _as_steps(_attempt("the rollback", self._roll_back))
            yield from self._compare(tables, self.test.after_rollback, "after_rollback")

    def _insert(self, tables: CaseTables) -> None:
        for name, rows in self.test.given.items():
            table = TableName.parse(name)
            if rows.generated is not None:
                self._generate(name, rows.generated)
            elif rows.file is not None:
                tables.insert_file(table, str(self.ready.parquet[rows.file]))
            else:
                tables.insert(table, tuple(rows.columns), rows.rows)

    def _generate(self, name: str, rows: GeneratedRows) -> None:
        wanted = RowRange(0, rows.count, rows.seed)
        try:
            with open_tables(self.project, None) as open_:
                insert_generated(open_, name, wanted, lambda _rows: None)
        except OSError as error:
            raise IcemigrateError(f"rows for `{name}` cannot be written: {os_error_reason(error)}") from error

    def _keep_given(self, tables: CaseTables) -> None:
        """Read the rows that the rollback must bring back."""
        for name, rows in self.test.after_rollback.items():
            if rows.as_given:
                table = TableName.parse(name)
                columns = tables.columns(table)
                self.given_rows[name] = (columns, tables.rows(table, columns))

    def _roll_back(self) -> None:
        planned = plan_rollback(self.project, to=self.ready.start or "0")
        require_undoable(planned)
        rollback(self.project, planned.plan)

    def _compare(
        self, tables: CaseTables, expected: Mapping[str, CaseRows], key: str
    ) -> Iterator[tuple[str, bool]]:
        for name, rows in expected.items():
            found = list[str]()

            def compare(name: str = name, rows: CaseRows = rows) -> None:
                found.extend(self._table_failures(tables, name, rows, key))  # noqa: B023 (called at once)

            yield from _as_steps(_attempt(f"{key}: {name}", compare))
            yield from ((failure, False) for failure in found)

    def _table_failures(self, tables: CaseTables, name: str, rows: CaseRows, key: str) -> Iterator[str]:
        table = TableName.parse(name)
        if rows.as_given:
            columns, wanted = self.given_rows[name]
        elif rows.file is not None:
            columns, wanted = tables.rows_of_file(table, str(self.ready.parquet[rows.file]))
        else:
            columns = tuple(rows.columns) or tables.columns(table)
            wanted = tables.expected_of_table(table, columns, rows.rows)
        found = tables.rows(table, columns)
        yield from row_differences(f"{key}: {name}", columns, wanted, found, ordered=rows.ordered)


def _sum_of_known(one: int | None, other: int | None) -> int | None:
    """The sum of two numbers; ``None`` where both are unknown."""
    known = [number for number in (one, other) if number is not None]
    return sum(known) if known else None


def _milliseconds_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _query_failures(tables: CaseTables, sql: str, rows: CaseRows) -> Iterator[str]:
    columns, found = tables.result(sql)
    unknown = [name for name in rows.columns if name not in columns]
    if unknown:
        yield f"the result has no column `{unknown[0]}`, only {', '.join(columns)}\n  query: {sql.strip()}"
        return
    named = tuple(rows.columns) or columns
    places = [columns.index(name) for name in named]
    wanted = tables.expected_of_query(sql, named, rows.rows)
    chosen = [tuple(row[i] for i in places) for row in found]
    yield from row_differences(f"query: {sql.strip()}", named, wanted, chosen, ordered=rows.ordered)


def _attempt(what: str, step: Callable[[], None]) -> list[str]:
    """The reason why a step could not run; empty where it did."""
    try:
        step()
    except Mistakes as error:
        return [f"{what}: {error.message}", *(f"  {d}" for d in error.diagnostics)]
    except IcemigrateError as error:
        return [f"{what}: {error.message}" + (f"\n  {error.hint}" if error.hint else "")]
    return []


def _as_steps(reasons: Sequence[str]) -> Iterator[tuple[str, bool]]:
    if reasons:
        yield "\n".join(reasons), True


def row_differences(
    what: str, columns: Sequence[str], wanted: Sequence[CaseRow], found: Sequence[CaseRow], *, ordered: bool
) -> Iterator[str]:
    """One text about rows that differ; none if they are equal.

    :param ordered: whether their order counts.
    """
    if ordered:
        pairs = list(zip(wanted, found, strict=False))
        same = next((i for i, (one, other) in enumerate(pairs) if one != other), len(pairs))
        missing, extra = wanted[same:], found[same:]
        where = f" from row {same + 1} on"
    else:
        old, new = Counter(wanted), Counter(found)
        missing, extra, where = list((old - new).elements()), list((new - old).elements()), ""
    if not missing and not extra:
        return
    count = f"expected {format_count(len(wanted), 'row')}, found {len(found)}; they differ{where}"
    lines = [f"{what}: {count}", f"    {' | '.join(columns)}"]
    for mark, rows in (("-", missing), ("+", extra)):
        lines += [f"  {mark} {' | '.join(_shown(cell) for cell in row)}" for row in rows[:_MOST_SHOWN]]
        if len(rows) > _MOST_SHOWN:
            lines.append(f"  {mark} … {len(rows) - _MOST_SHOWN} more")
    yield "\n".join(lines)


def _shown(cell: str | None) -> str:
    return "null" if cell is None else cell
