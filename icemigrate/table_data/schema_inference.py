"""The columns of a new table, from a schema of another form, or from the data of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from icemigrate.desired_state.arrow_schema import new_columns
from icemigrate.errors import Mistakes, UsageError
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import BadMetadata, schema_from_json
from icemigrate.table_data.csv_rows import fast_relation, read_header
from icemigrate.table_data.duckdb_session import text_literal
from icemigrate.table_data.input_files import InputFile
from icemigrate.table_data.load_database import LoadDatabase


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

        return schema_from_arrow(pq.read_schema(file.path).remove_metadata())
    if file.format in ("csv", "tsv"):
        return _csv_schema(file, db)
    raise file.error("columns are read from Parquet and CSV files", "give a schema as JSON or YAML")


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
        return schema_from_arrow(relation.to_arrow_table().schema)
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        raise file.error(f"its columns cannot be found: {reason}", "give a schema file") from error
