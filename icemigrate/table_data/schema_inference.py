"""The columns of a new table, from a schema of another form, or from the data of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from icemigrate.desired_state.arrow_schema import new_columns
from icemigrate.diagnostics import format_count
from icemigrate.errors import Mistakes, UsageError
from icemigrate.frozen import replace
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import BadMetadata, schema_from_json
from icemigrate.iceberg.type_text import MAX_PRECISION
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.table_data.bad_rows import SHOWN_ROWS
from icemigrate.table_data.csv_quotes import require_closed_quotes
from icemigrate.table_data.csv_rows import NumberedRecords, fast_relation, read_header, require_encoding
from icemigrate.table_data.duckdb_problems import duckdb_problem
from icemigrate.table_data.duckdb_session import quoted_identifier, text_literal
from icemigrate.table_data.input_files import InputFile
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.text_casts import text_misfits

_TEXT = Primitive("string")


def schema_from_value(schema: Any) -> Schema:
    """The schema of a ``pyarrow.Schema``, or of Iceberg's schema JSON as a mapping or a text.

    :raises UsageError: it is of another kind, or has a type that Iceberg lacks.
    """
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise UsageError(f"the schema is not JSON: {error}") from error
    if isinstance(schema, Mapping):
        try:
            return schema_from_json(schema)
        except (BadMetadata, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"the schema is not Iceberg's schema JSON: {error}",
                'write `{"type": "struct", "fields": [{"id": 1, "name": …, "type": …, "required": …}]}`',
            ) from error
    if hasattr(schema, "names") and hasattr(schema, "field"):
        return schema_from_arrow(schema)
    raise UsageError(
        f"a {type(schema).__name__} is no schema", "pass a `pyarrow.Schema`, or Iceberg's schema JSON"
    )


def schema_from_arrow(schema: Any) -> Schema:
    """The schema of a ``pyarrow.Schema``, with new field ids; all columns that may be null are optional.

    :raises UsageError: it has a type that Iceberg lacks.
    """
    try:
        return Schema(new_columns(schema))
    except Mistakes as error:
        first = error.diagnostics[0]
        raise UsageError(first.message, first.hint or "convert the column, or leave it out") from None


def schema_of_file(file: InputFile, db: LoadDatabase) -> Schema:
    """The columns of a Parquet or CSV file; those of CSV have the types that fit all of its values.

    :raises UsageError: it is of another format, or cannot be read.
    """
    if file.format == "parquet":
        import pyarrow.parquet as pq

        with file.reading_errors():
            schema = pq.read_schema(file.path).remove_metadata()
        return schema_from_arrow(schema)
    if file.format in ("csv", "tsv"):
        return _csv_schema(file, db)
    raise file.error("columns are read from Parquet and CSV files", "give a schema as JSON or YAML")


def has_rows(file: InputFile, db: LoadDatabase) -> bool:
    """Whether a CSV file that :func:`schema_of_file` reads has more than its header."""
    return bool(db.query(f"SELECT 1 FROM {fast_relation([file], read_header(file)).sql} LIMIT 1"))


def _csv_schema(file: InputFile, db: LoadDatabase) -> Schema:
    import duckdb

    header = read_header(file)
    # The same reading as in a load, but with types that DuckDB finds in all records.
    sql = fast_relation([file], header).sql
    sniffed = sql.replace("auto_detect = false", "auto_detect = true, sample_size = -1")
    start, end = sniffed.index("columns = {"), sniffed.index("}, auto_detect")
    names = f"names = [{', '.join(map(text_literal, header))}]"
    sniffed = f"{sniffed[:start]}{names}{sniffed[end + 1 :]}"
    try:
        relation = db.connection.sql(f"SELECT * FROM {sniffed} LIMIT 0")
        found = relation.to_arrow_table().schema
        return _that_loads(schema_from_arrow(_with_long_numbers(found, sql, db)), sql, db)
    except duckdb.Error as error:
        _require_readable(file, header)
        reason = duckdb_problem(error).message
        raise file.error(f"its columns cannot be found: {reason}", "give a schema file") from error


def _that_loads(schema: Schema, sql: str, db: LoadDatabase) -> Schema:
    """The schema with texts where a load would refuse a value, such as ``0x1F`` or ``01/02/2024``.

    :param sql: the rows as texts.
    :raises duckdb.Error: a row has another number of values than the header.
    """
    checked = [field for field in schema.fields if field.type != _TEXT]
    misfits = (f"bool_or({text_misfits(field.type, quoted_identifier(field.name))})" for field in checked)
    # The search for types passes over rows with another number of values: all are read, also without a type.
    ((_, *found),) = db.query(f"SELECT {', '.join(('count(*)', *misfits))} FROM {sql}")
    unfit = {field.id for field, is_unfit in zip(checked, found, strict=True) if is_unfit}
    return Schema(
        tuple(replace(field, type=_TEXT) if field.id in unfit else field for field in schema.fields)
    )


def _require_readable(file: InputFile, header: Sequence[str]) -> None:
    """Check what DuckDB refuses in a CSV file, and does not say in a sentence.

    :raises UsageError: the file is not UTF-8, or a quoted value does not end.
    :raises Mistakes: rows have another number of values than the header.
    """
    require_encoding(file)
    columns = {name: Field(number, name, Primitive("string")) for number, name in enumerate(header, 1)}
    records = NumberedRecords(file, header, columns, require_closed_quotes(file))
    for _ in records.reader():
        pass
    found = records.ragged
    if found:
        count = format_count(len(found), "row has", "rows have")
        shown = f" (the first {SHOWN_ROWS} are shown)" if len(found) > SHOWN_ROWS else ""
        error = Mistakes(
            tuple(one for row in found[:SHOWN_ROWS] for one in row.diagnostics),
            f"the columns of `{file.shown}` cannot be found: {count} another number of values than the header"
            f"{shown}",
        )
        error.hint = "correct these rows, or check that `--delimiter` is the one of the file"
        raise error


def _with_long_numbers(schema: Any, sql: str, db: LoadDatabase) -> Any:
    """A ``pyarrow.Schema`` with an exact type where DuckDB takes whole numbers for floating-point ones.

    A number that does not fit a long makes its column a decimal, or a text with more than 38 digits.

    :param sql: the rows as texts.
    """
    import pyarrow as pa

    doubles = [field.name for field in schema if pa.types.is_floating(field.type)]
    if not doubles:
        return schema
    parts = []
    for name in map(quoted_identifier, doubles):
        digits = f"strlen(ltrim(trim({name}), '+-'))"
        parts.append(f"bool_and(regexp_full_match({name}, '\\s*[+-]?[0-9]+\\s*') OR {name} = '')")
        parts.append(f"max({digits})")
    (row,) = db.query(f"SELECT {', '.join(parts)} FROM {sql}")
    for name, is_whole, digits in zip(doubles, row[::2], row[1::2], strict=True):
        if is_whole:
            type_ = pa.decimal128(digits, 0) if digits <= MAX_PRECISION else pa.string()
            position = schema.get_field_index(name)
            schema = schema.set(position, pa.field(name, type_))
    return schema
