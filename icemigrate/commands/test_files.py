"""Finds and reads the files of migration tests, and checks them against the declared tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from icemigrate.commands.list_templates import with_named_values
from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_valid_files, raise_if_errors
from icemigrate.data_steps.sql_syntax_checks import query_fault
from icemigrate.diagnostics import Diagnostic, FilePosition, did_you_mean
from icemigrate.errors import IcemigrateError, UsageError, os_error_reason
from icemigrate.files.migration_folder import TESTS_FOLDER
from icemigrate.files.parse.source_text import SourceText, decode_text, read_bytes, read_source, shown_path
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_test_file import CaseRows, CellText, MigrationTest, read_migration_tests
from icemigrate.files.version_number import number_of
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import BadName, TableName, format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.project.project_values import Project
from icemigrate.results.command_results import errors_besides_consents
from icemigrate.system.file_reads import list_names_inside
from icemigrate.system.repository_boundary import OutsideRepository, resolve_inside
from icemigrate.test_data.schema_checks import has_stored_columns, unsupported_columns

_YAML_FILES = (".yaml", ".yml")
_PARQUET_FILES = (".parquet", ".pq")
_MOST_ROWS = 10_000


class ReadyTest(Frozen):
    """A test whose names and files are known to exist.

    :param start: the version to apply before the rows are written; ``None`` for an empty catalog.
    :param parquet: real paths of Parquet files, by the path in the test.
    """

    test: MigrationTest
    version: str
    start: str | None
    parquet: Mapping[str, Path]


class FoundTests(Frozen):
    """The tests to run, and how many the filters left out."""

    tests: tuple[ReadyTest, ...]
    left_out: int


def find_tests(project: Project, filters: Sequence[str]) -> FoundTests:
    """The tests of a project.

    :param filters: parts of the name of a file or a test; a test needs one of them.
    :raises UsageError: there is no test, or none that a filter names.
    :raises Mistakes: with all errors of all files, those of migrations too.
    """
    files = _file_names(project)
    if not files:
        hint = "write `tests:` with rows before and after a version; docs/migration-tests.md has an example"
        folder = project.migrations_dir / TESTS_FOLDER
        raise UsageError(f"there are no tests in `{shown_path(folder)}`", hint)
    found, tests, left_out = list[Diagnostic](), list[ReadyTest](), 0
    read = tuple(_read_tests(project, files, found))
    states = _States(project, load_valid_files(project, names=_tables_of(test for _, test in read)))
    for source, test in read:
        ready = _ready(project, test, states, found)
        if not filters or any(part in f"{source.path} {test.name}" for part in filters):
            tests.append(ready)
        else:
            left_out += 1
    raise_if_errors(tuple(found))
    if not tests:
        names = ", ".join(f"`{one}`" for one in filters)
        raise UsageError(f"no test has {names} in its name or file", f"{left_out} tests have other names")
    return FoundTests(tuple(tests), left_out)


def diagnostics_of_tests(project: Project, files: Sequence[MigrationFile] | None) -> tuple[Diagnostic, ...]:
    """What is wrong with the files of tests.

    :param files: the valid migration files that declare the tables; ``None`` to check the syntax alone.
    :raises IcemigrateError: the folder cannot be read.
    """
    found = list[Diagnostic]()
    tests = [test for _, test in _read_tests(project, _file_names(project), found)]
    if files is not None:
        names = _tables_of(tests)
        if with_named_values(project, files, names) is not project:
            files = load_valid_files(project, names=names)
        states = _States(project, files)
        for test in tests:
            _ready(project, test, states, found)
    return tuple(found)


def _file_names(project: Project) -> list[str]:
    folder = project.migrations_dir / TESTS_FOLDER
    try:
        return [n for n in list_names_inside(folder, project.top) if n.lower().endswith(_YAML_FILES)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise IcemigrateError(f"`{shown_path(folder)}` cannot be read: {os_error_reason(error)}") from error


def _tables_of(tests: Iterable[MigrationTest]) -> tuple[str, ...]:
    """The tables that tests name: a template declares those of its values."""
    parts = (part for test in tests for part in (test.given, test.expected, test.after_rollback))
    return tuple(dict.fromkeys(name for part in parts for name in part))


def _read_tests(
    project: Project, names: Sequence[str], found: list[Diagnostic]
) -> Iterator[tuple[SourceText, MigrationTest]]:
    """The tests of files, each with its file; reports files that cannot be read."""
    for name in names:
        source = read_source(project.migrations_dir / TESTS_FOLDER / name, top=project.top)
        if isinstance(source, Diagnostic):
            found.append(source)
            continue
        read = read_migration_tests(source)
        found += read.diagnostics
        for test in read.tests:
            yield source, test


class _States:
    """The declared tables after each version, each computed once."""

    def __init__(self, project: Project, files: Sequence[MigrationFile]) -> None:
        self.project, self.files = project, tuple(files)
        self.texts = {f.version.number: f.version.text for f in files}
        self._known: dict[int, DeclaredState] = {}

    def after(self, number: int) -> DeclaredState:
        """The state after a version."""
        if number not in self._known:
            files = [f for f in self.files if f.version.number <= number]
            planned = plan_from_empty(self.project, files)
            raise_if_errors(errors_besides_consents(planned.diagnostics))
            self._known[number] = planned.state if files else EMPTY_STATE
        return self._known[number]

    def number(self, text: str, place: FilePosition, found: list[Diagnostic]) -> int | None:
        """The number of a version; reports an unknown one."""
        number = number_of(text)
        if number in self.texts:
            return number
        known = (
            did_you_mean(text, self.texts.values())
            or f"the last version is {max(self.texts.values(), default='')}"
        )
        found.append(Diagnostic("unknown-version", f"no migration has the version `{text}`", place, known))
        return None


def _ready(project: Project, test: MigrationTest, states: _States, found: list[Diagnostic]) -> ReadyTest:
    number = states.number(test.version, test.version_place, found)
    if number is None:
        return ReadyTest(test, test.version, None, {})
    start = max((one for one in states.texts if one < number), default=0)
    if test.start is not None and test.start_place is not None:
        given = 0 if number_of(test.start) == 0 else states.number(test.start, test.start_place, found)
        if given is not None and given >= number:
            message = f"`from: {test.start}` is not before version {test.version}"
            found.append(Diagnostic("bad-value", message, test.start_place, "name an earlier version"))
        start = start if given is None or given >= number else given
    before, after = states.after(start), states.after(number)
    parquet = dict[str, Path]()
    tables = {
        "given": _rows_of(project, test.given, before, parquet, found),
        "expected": _rows_of(project, test.expected, after, parquet, found),
        "after_rollback": _rows_of(project, test.after_rollback, before, parquet, found),
    }
    for query in test.queries:
        if (fault := query_fault(query.sql)) is not None:
            message = f"the query {fault[0].partition(', but')[0]}"
            found.append(Diagnostic("bad-expression", message, query.place, fault[1]))
    return ReadyTest(replace(test, **tables), states.texts[number], states.texts.get(start), parquet)


def _rows_of(
    project: Project,
    tables: Mapping[str, CaseRows],
    state: DeclaredState,
    parquet: dict[str, Path],
    found: list[Diagnostic],
) -> dict[str, CaseRows]:
    """Rows by table, those of files read; reports unknown tables, columns and files."""
    out = dict[str, CaseRows]()
    for text, rows in tables.items():
        try:
            table = state.tables.get(TableName.parse(text))
        except BadName:
            table = None
        if table is None:
            known = did_you_mean(text, map(str, state.tables)) or "name a table that is declared then"
            message = f"there is no table `{text}` at this version"
            found.append(Diagnostic("unknown-table", message, rows.place, known))
            continue
        read = _from_file(project, rows, parquet, found) if rows.file is not None else rows
        names = [f.name for f in table.schema.fields]
        for name, place in read.columns.items():
            if name not in names:
                message = f"`{text}` has no column `{name}` at this version"
                found.append(Diagnostic("unknown-column", message, place, did_you_mean(name, names)))
        if rows.generated is not None:
            found += _without_test_data(text, table.schema, rows.place)
        out[text] = read
    return out


def _without_test_data(table: str, schema: Schema, place: FilePosition) -> Iterator[Diagnostic]:
    hint = "list the rows, or name a file"
    if not has_stored_columns(schema):
        yield Diagnostic("bad-value", f"`{table}` has no column that a file stores", place, hint)
    for path, reason in unsupported_columns(schema):
        message = f"column `{format_path(path)}` of `{table}` {reason}, for which there is no test data"
        yield Diagnostic("bad-value", message, place, hint)


def _from_file(
    project: Project,
    rows: CaseRows,
    parquet: dict[str, Path],
    found: list[Diagnostic],
) -> CaseRows:
    """The rows of a CSV or JSON file; of a Parquet file its real path, for Spark."""
    assert rows.file is not None, "it names a file"
    path = project.migrations_dir / TESTS_FOLDER / rows.file
    suffix = path.suffix.lower()
    if suffix in _PARQUET_FILES:
        try:
            parquet[rows.file] = resolve_inside(path, project.top)
            if not parquet[rows.file].is_file():
                found.append(Diagnostic("unreadable-file", f"there is no file `{rows.file}`", rows.place))
        except OSError as error:
            code = "outside-repository" if isinstance(error, OutsideRepository) else "unreadable-file"
            message = f"`{rows.file}` is not read: {os_error_reason(error)}"
            found.append(Diagnostic(code, message, rows.place))
        return rows
    data = read_bytes(path, shown_path(path), project.top)
    source = decode_text(data, shown_path(path)) if isinstance(data, bytes) else data
    if isinstance(source, Diagnostic):
        found.append(replace(source, place=rows.place, message=f"`{rows.file}`: {source.message}"))
        return rows
    readers = {".csv": _csv_rows, ".json": _json_rows, ".jsonl": _json_rows, ".ndjson": _json_rows}
    if suffix not in readers:
        message = f"`{rows.file}` is no file of rows"
        found.append(Diagnostic("bad-value", message, rows.place, "use .csv, .json, .jsonl or .parquet"))
        return rows
    try:
        read = readers[suffix](source.text)
        if len(read) > _MOST_ROWS:
            raise ValueError(f"it has more than {_MOST_ROWS:,} rows")
    except (ValueError, csv.Error, RecursionError) as error:
        message = f"`{rows.file}` cannot be read: {error}"
        found.append(Diagnostic("bad-value", message, rows.place))
        return rows
    columns = {name: rows.place for row in read for name in row}
    return replace(rows, columns=columns, rows=tuple(read), file=None)


def _csv_rows(text: str) -> list[Mapping[str, CellText]]:
    """The rows of a CSV file with a header; an empty value is null."""
    lines = list(csv.reader(io.StringIO(text), strict=True))
    head, *rows = lines or [[]]
    if len(set(head)) < len(head) or not all(head):
        raise ValueError("line 1: each column needs a name of its own")
    for number, row in enumerate(rows, start=2):
        if row and len(row) != len(head):
            raise ValueError(f"row {number} has {len(row)} values for {len(head)} columns")
    return [{name: value or None for name, value in zip(head, row, strict=True)} for row in rows if row]


def _json_rows(text: str) -> list[Mapping[str, CellText]]:
    """The rows of a JSON list, or of JSON lines."""
    if text.lstrip().startswith("["):
        rows = json.loads(text, parse_float=str)
    else:
        rows = [json.loads(line, parse_float=str) for line in text.splitlines() if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("each row must be an object")
    return [{name: _cell(value) for name, value in row.items()} for row in rows]


def _cell(value: Any) -> CellText:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
