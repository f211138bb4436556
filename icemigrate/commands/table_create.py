"""``table create``: a table that no migration declares."""

from __future__ import annotations

import json
from pathlib import Path

from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_valid_files
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.metadata_parts import current_schema
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.project import Project
from icemigrate.results.write_results import CreatedColumn, CreateTableResult
from icemigrate.system.file_reads import open_named
from icemigrate.table_data.input_files import DataFormat, find_input_files, require_file, unreadable_file
from icemigrate.table_data.load_database import open_load_database
from icemigrate.table_data.new_table import (
    create_declared,
    needed_version,
    require_creatable,
    table_from_yaml,
)
from icemigrate.table_data.schema_inference import has_rows, schema_from_value, schema_of_file
from icemigrate.table_data.table_session import TableSession, open_tables

_SCHEMA_FILES = (".json", ".yaml", ".yml")
_FORMAT_HINT = (
    "end its name in `.yaml`, `.json`, `.parquet`, `.csv` or `.tsv`; `--delimiter CHARACTER` reads it as CSV"
)


class _Declaration(Frozen):
    """What a file says of a table.

    :param is_inferred: whether the types are those that fit all values of a CSV file.
    :param has_rows: whether that file has rows.
    """

    table: Table
    is_inferred: bool = False
    has_rows: bool = True


def table_create(
    project: Project,
    environment: str | None,
    table: str,
    schema: Path,
    *,
    delimiter: str | None = None,
    dry_run: bool = False,
) -> CreateTableResult:
    """Create a table from a schema file, or from the columns of a data file.

    :param schema: Iceberg's schema JSON; the keys of a migration's entry as YAML or JSON; or a Parquet or CSV
        file.
    :param delimiter: of a CSV or TSV file; ``None`` for that of the format.
    :param dry_run: only show the table.
    :raises UsageError: there is no such environment or file, migrations declare the table, or it exists.
    :raises Mistakes: the file has errors, or Iceberg's or Spark's rules forbid the table.
    """
    with open_tables(project, environment) as tables:
        declared = tables.parse(table)
        _require_undeclared(project, tables, declared)
        found = _declaration(declared, schema, delimiter)
        made = require_creatable(tables, declared, found.table, str(schema))
        result = CreateTableResult(
            table=str(declared),
            name=str(made.name),
            environment=tables.environment.environment.name,
            format_version=made.format_version,
            location=None,
            columns=_columns(made.schema),
            is_inferred=found.is_inferred,
            has_rows=found.has_rows,
        )
        if dry_run:
            return result
        created = create_declared(tables, declared, found.table, str(schema)).metadata
        columns = _columns(current_schema(created))
        return replace(result, location=created["location"], columns=columns, done=True)


def _require_undeclared(project: Project, tables: TableSession, declared: TableName) -> None:
    """Refuse a table that migrations create.

    :raises UsageError: a migration declares it.
    """
    if not project.migrations_dir.exists():
        return
    for plan in plan_from_empty(project, load_valid_files(project, names=(str(declared),))).plans:
        if any(declared == table.declared and table.wanted is not None for table in plan.tables):
            hint = "`icemigrate apply` creates it"
            if tables.find(declared) is not None:
                hint = (
                    f"it exists already: `icemigrate table insert {declared} --data FILE` inserts rows, and "
                    "`icemigrate new` begins a migration that changes its columns"
                )
            raise UsageError(f"migration {plan.version} declares table `{declared}`", hint)


def _declaration(declared: TableName, path: Path, delimiter: str | None) -> _Declaration:
    """The table that a file declares.

    :raises UsageError: the file cannot be read.
    """
    if path.suffix.lower() in _SCHEMA_FILES:
        if delimiter is not None:
            raise UsageError(
                f"`{path}` has no delimiter", "leave `--delimiter` out, which is for CSV and TSV"
            )
        text = _text(path)
        if path.suffix.lower() == ".json" and (schema := _schema_json(text)) is not None:
            return _Declaration(_with_version(declared, schema_from_value(schema)))
        return _Declaration(table_from_yaml(declared, text, str(path)))
    with open_load_database() as db:
        (file, *others) = find_input_files([str(path)], db.folder, DataFormat(None, delimiter, _FORMAT_HINT))
        if others:
            raise UsageError(f"`{path}` names several files", "name one of them")
        table = _with_version(declared, schema_of_file(file, db))
        is_inferred = file.format != "parquet"
        return _Declaration(table, is_inferred, not is_inferred or has_rows(file, db))


def _with_version(declared: TableName, schema: Schema) -> Table:
    return Table(declared, schema, format_version=needed_version(schema))


def _text(path: Path) -> str:
    require_file(path)
    try:
        with open_named(path) as stream:
            return stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"the file `{path}` is not UTF-8", "convert it to UTF-8") from error
    except OSError as error:
        raise unreadable_file(str(path), error) from error


def _schema_json(text: str) -> object | None:
    """Iceberg's schema JSON, also that of a whole table's metadata; ``None`` where it is no such JSON."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "fields" in found else None


def _columns(schema: Schema) -> tuple[CreatedColumn, ...]:
    return tuple(CreatedColumn(c.id, c.name, format_type(c.type), required=c.required) for c in schema.fields)
