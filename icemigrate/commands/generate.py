"""``generate``: rows of test data for a table, as a Parquet file."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_valid_files, raise_if_errors
from icemigrate.errors import IcemigrateError, UsageError, os_error_reason
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import schema_from_json
from icemigrate.iceberg.types import Struct, renumber_fields, walk_fields
from icemigrate.project import Project
from icemigrate.results.command_results import errors_besides_consents
from icemigrate.results.generate_results import GenerateResult
from icemigrate.system.activity import activity
from icemigrate.system.file_writes import replacing_stream
from icemigrate.system.repository_boundary import OutsideRepository
from icemigrate.table_data.table_session import CurrentTable, open_tables
from icemigrate.test_data.parquet_file import RowRange, write_rows
from icemigrate.test_data.schema_checks import has_stored_columns, unsupported_columns

MAX_ROWS = 10**12
MAX_SEED = 2**64 - 1
_BLOOM_FILTER = "write.parquet.bloom-filter-enabled.column."


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
) -> GenerateResult:
    """Generate rows for a table and write them to a Parquet file.

    The columns are those of the table in the catalog; if it has no such table, those of the declared table.

    :param output: by default a file with the table's name in the working directory.
    :raises UsageError: a number is out of its range; there is no such environment or table.
    :raises Mistakes: the table is only declared, and the files have errors.
    :raises IcemigrateError: a column has no test data; the file cannot be written.
    """
    range_ = _checked_range(rows, seed, first_row)
    source = _source(project, environment, table)
    _require_supported(source)
    path = Path(f"{source.name}.parquet") if output is None else output
    blooms = [
        key.removeprefix(_BLOOM_FILTER)
        for key, value in source.properties.items()
        if key.startswith(_BLOOM_FILTER) and value.lower() == "true"
    ]
    began = time.monotonic()
    done = 0

    def report(written: int) -> None:
        nonlocal done
        done = written

    try:
        with activity(lambda: f"Generating rows: {done:,} of {rows:,}"), replacing_stream(path) as stream:
            generator = write_rows(source.schema, range_, stream, report, blooms)
            size = stream.seek(0, 2) if stream.seekable() else 0
    except OSError as error:
        hint = "replace the link with a file" if isinstance(error, OutsideRepository) else None
        reason = os_error_reason(error) if error.strerror else str(error)
        raise IcemigrateError(f"`{path}` cannot be written: {reason}", hint) from error
    return GenerateResult(
        table=str(source.name),
        schema_from="catalog" if source.is_in_catalog else "files",
        path=str(path),
        rows=rows,
        first_row=first_row,
        seed=seed,
        file_bytes=size,
        generator=generator,
        elapsed_ms=round((time.monotonic() - began) * 1000),
    )


def _checked_range(rows: int, seed: int, first_row: int) -> RowRange:
    for option, value, low, high in (
        ("--rows", rows, 1, MAX_ROWS),
        ("--seed", seed, 0, MAX_SEED),
        ("--first-row", first_row, 0, MAX_ROWS),
    ):
        if not low <= value <= high:
            hint = f"give a number from {low} to {high}"
            raise UsageError(f"{option} {value}: the number is out of range", hint)
    return RowRange(first_row, rows, seed)


def _source(project: Project, environment: str | None, text: str) -> _Source:
    with open_tables(project, environment) as tables:
        name = tables.parse(text)
        found = tables.find(name)
        declared = _declared(project, name) if found is None else None
        if declared is None:
            return _current(found or tables.load(text))
    return declared


def _current(table: CurrentTable) -> _Source:
    metadata = table.metadata
    schemas = {schema["schema-id"]: schema for schema in metadata["schemas"]}
    schema = schema_from_json(schemas[metadata["current-schema-id"]])
    return _Source(table.declared, schema, metadata.get("properties", {}), is_in_catalog=True)


def _declared(project: Project, name: TableName) -> _Source | None:
    """The table as the migration files declare it, with new field ids; ``None`` where they do not."""
    planned = plan_from_empty(project, load_valid_files(project))
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
