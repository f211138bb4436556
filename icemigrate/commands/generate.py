"""``generate``: rows of test data for a table, as a Parquet file, as an Arrow table or inserted."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.commands.list_templates import placeholder_tables
from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_valid_files, raise_if_errors
from icemigrate.commands.user_files import not_written
from icemigrate.errors import IcemigrateError, UsageError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import schema_from_json
from icemigrate.iceberg.types import Struct, renumber_fields, walk_fields
from icemigrate.project import Project
from icemigrate.results.command_results import errors_besides_consents
from icemigrate.results.generate_results import GenerateResult
from icemigrate.system.file_writes import replacing_stream
from icemigrate.system.measured_activity import ROWS, measured_activity
from icemigrate.table_data.table_session import CurrentTable, TableSession, open_tables
from icemigrate.test_data.parquet_file import Report, RowRange, bloom_columns, write_rows
from icemigrate.test_data.schema_checks import has_stored_columns, unsupported_columns

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS = 10**12
MAX_SEED = 2**64 - 1
_OTHER_FORMATS = frozenset(
    {".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".arrow", ".orc", ".avro", ".gz", ".zst"}
)
"""Ends of names of files that have another format than Parquet."""


class _Source(Frozen):
    """The table whose columns are filled.

    :param is_in_catalog: whether it is the current table, and not the declared one.
    """

    name: TableName
    schema: Schema
    properties: dict[str, str]
    is_in_catalog: bool


def generate(
    project: Project,
    environment: str | None,
    table: str,
    rows: int,
    *,
    seed: int = 0,
    first_row: int = 0,
    output: Path | None = None,
    insert: bool = False,
) -> GenerateResult:
    """Generate rows for a table: into a Parquet file, or into the table.

    The columns are those of the table in the catalog; if it has no such table, those of the declared table.

    :param output: by default a file with the table's name in the working directory.
    :param insert: insert the rows in one snapshot, and write no file.
    :raises UsageError: a number is out of its range; there is no such environment or table; both a file and
        an insert are requested.
    :raises Mistakes: the table is only declared, and the files have errors.
    :raises IcemigrateError: a column has no test data; a file cannot be written.
    """
    if insert and output is not None:
        raise UsageError("`--insert` writes no file", "remove `--output`, or `--insert`")
    if output is not None and output.suffix.lower() in _OTHER_FORMATS:
        raise UsageError(
            f"`{output}`: test data is a Parquet file, and the name says `{output.suffix}`",
            f"write `{output.with_suffix('.parquet')}`",
        )
    wanted = _checked_range(rows, seed, first_row)
    began = time.monotonic()
    with open_tables(project, environment) as tables:
        source = _supported_source(tables, project, table)
        path = output or Path(f"{source.name}.parquet")
        done = _insert(tables, source, wanted) if insert else _write(source, wanted, path)
    return replace(done, elapsed_ms=round((time.monotonic() - began) * 1000))


def generate_arrow(
    tables: TableSession, project: Project | None, table: str, rows: int, seed: int, first_row: int
) -> pa.Table:
    """Generate rows for a table as an Arrow table, with Iceberg's field ids in the metadata of its fields.

    :param project: whose migration files declare a table that the catalog does not have; ``None`` without
        one.
    :raises: as :func:`generate`.
    """
    wanted = _checked_range(rows, seed, first_row, is_option=False)
    source = _supported_source(tables, project, table)
    with tempfile.TemporaryDirectory(prefix="icemigrate_rows_") as folder:
        path = Path(folder) / "rows.parquet"
        _write(source, wanted, path)
        import pyarrow.parquet as pq

        return pq.read_table(path)


def insert_test_data(
    tables: TableSession, table: str, rows: int, seed: int, first_row: int
) -> GenerateResult:
    """Generate rows and insert them into a table of the catalog, in one snapshot.

    :raises: as :func:`generate`.
    """
    wanted = _checked_range(rows, seed, first_row, is_option=False)
    began = time.monotonic()
    done = _insert(tables, _supported_source(tables, None, table), wanted)
    return replace(done, elapsed_ms=round((time.monotonic() - began) * 1000))


def _result(source: _Source, wanted: RowRange) -> GenerateResult:
    return GenerateResult(
        table=str(source.name),
        schema_from="catalog" if source.is_in_catalog else "files",
        rows=wanted.count,
        first_row=wanted.first,
        seed=wanted.seed,
    )


def _write(source: _Source, wanted: RowRange, path: Path) -> GenerateResult:
    """Write the rows to a file."""
    try:
        with _generating(wanted) as report, replacing_stream(path) as stream:
            blooms = bloom_columns(source.properties)
            generator = write_rows(source.schema, wanted, stream, report, blooms)
            size = stream.seek(0, 2) if stream.seekable() else 0
    except OSError as error:
        raise not_written(path, error) from error
    return replace(_result(source, wanted), path=str(path), file_bytes=size, generator=generator)


def _insert(tables: TableSession, source: _Source, wanted: RowRange) -> GenerateResult:
    """Insert the rows into the table."""
    from icemigrate.table_data.generated_rows import insert_generated

    name = str(source.name)
    if not source.is_in_catalog:
        hint = "`icemigrate apply` creates it; without `--insert` the rows are written to a file"
        raise UsageError(f"table `{name}` is declared, but not in the catalog", hint)
    try:
        with _generating(wanted) as report:
            done = insert_generated(tables, name, wanted, report)
    except OSError as error:
        raise not_written(Path(error.filename or tempfile.gettempdir()), error) from error
    return replace(
        _result(source, wanted),
        files=done.files,
        file_bytes=done.size,
        snapshot_id=done.snapshot_id,
        generator=done.generator,
    )


@contextmanager
def _generating(wanted: RowRange) -> Iterator[Report]:
    """A block that generates rows; it reports how many there are."""
    done = 0
    with measured_activity("Generating rows", ROWS, wanted.count) as add:

        def report(rows: int) -> None:
            nonlocal done
            add(rows - done)
            done = rows

        yield report


def _checked_range(rows: int, seed: int, first_row: int, *, is_option: bool = True) -> RowRange:
    """The range of some numbers.

    :param is_option: whether they are options of the command, not arguments of a method.
    """
    for name, value, low, high in (
        ("rows", rows, 1, MAX_ROWS),
        ("seed", seed, 0, MAX_SEED),
        ("first_row", first_row, 0, MAX_ROWS),
    ):
        if not low <= value <= high:
            shown = f"--{name.replace('_', '-')} {value}" if is_option else f"`{name}={value}`"
            hint = f"give a number from {low} to {high}"
            raise UsageError(f"{shown}: the number is out of range", hint)
    return RowRange(first_row, rows, seed)


def _supported_source(tables: TableSession, project: Project | None, text: str) -> _Source:
    """The table to fill, each of whose columns has test data."""
    name = tables.parse(text)
    found = tables.find(name)
    declared = _declared(project, name) if found is None and project is not None else None
    source = _current(found or tables.load(text)) if declared is None else declared
    _require_supported(source)
    return source


def _current(table: CurrentTable) -> _Source:
    metadata = table.metadata
    schemas = {schema["schema-id"]: schema for schema in metadata["schemas"]}
    schema = schema_from_json(schemas[metadata["current-schema-id"]])
    return _Source(table.declared, schema, metadata.get("properties", {}), is_in_catalog=True)


def _declared(project: Project, name: TableName) -> _Source | None:
    """The table as the migration files declare it, with new field ids; ``None`` where they do not.

    A template declares it for each value that can be in its name.

    :raises UsageError: the table is a placeholder for those of values that are not known.
    """
    files = load_valid_files(project, names=(str(name),))
    if (stand_in := placeholder_tables(project, files).get(name)) is not None:
        hint = "name the table of a value of the list"
        raise UsageError(f"`{name}` is no table: {stand_in.reason}", hint)
    planned = plan_from_empty(project, files)
    raise_if_errors(errors_besides_consents(planned.diagnostics))
    table = planned.state.tables.get(name)
    if table is None:
        return None
    numbers = itertools.count(1)
    root = renumber_fields(table.schema.root, lambda: next(numbers))
    assert isinstance(root, Struct)
    pairs = zip(walk_fields(table.schema.root), walk_fields(root), strict=True)
    renumbered = {old.id: new.id for (_, old), (_, new) in pairs}
    identifiers = frozenset(renumbered[id_] for id_ in table.schema.identifier_ids)
    schema = replace(table.schema, fields=root.fields, identifier_ids=identifiers)
    return _Source(name, schema, dict(table.properties), is_in_catalog=False)


def _require_supported(source: _Source) -> None:
    if not has_stored_columns(source.schema):
        raise IcemigrateError(f"table `{source.name}` has no column that a file stores")
    for path, reason in unsupported_columns(source.schema):
        raise IcemigrateError(
            f"column `{format_path(path)}` of table `{source.name}` {reason}, for which there is no test data"
        )
