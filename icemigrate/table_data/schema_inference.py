"""The columns of a new table, from a schema of another form, or from the data of a file."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.errors import UsageError
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import BadMetadata, schema_from_json
from icemigrate.iceberg.types import Decimal, Field, Fixed, List, Map, Primitive, Struct, Type
from icemigrate.table_data.csv_rows import fast_relation, read_header
from icemigrate.table_data.duckdb_session import text_literal
from icemigrate.table_data.input_files import InputFile
from icemigrate.table_data.load_database import LoadDatabase

_WIDTHS = {8: "int", 16: "int", 32: "int", 64: "long"}


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
    ids = itertools.count(1)
    return Schema(tuple(_arrow_field(field, ids, field.name) for field in schema))


def _arrow_field(field: Any, ids: Iterator[int], path: str) -> Field:
    number = next(ids)
    return Field(number, field.name, _arrow_type(field.type, ids, path), required=not field.nullable)


def _arrow_type(type_: Any, ids: Iterator[int], path: str) -> Type:
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_dictionary(type_):
        return _arrow_type(type_.value_type, ids, path)
    if kinds.is_struct(type_):
        return Struct(tuple(_arrow_field(type_.field(i), ids, path) for i in range(type_.num_fields)))
    if kinds.is_map(type_):
        key = Field(next(ids), "key", _arrow_type(type_.key_type, ids, path), required=True)
        return Map(key, Field(next(ids), "value", _arrow_type(type_.item_type, ids, path)))
    if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_):
        return List(Field(next(ids), "element", _arrow_type(type_.value_type, ids, path)))
    if kinds.is_decimal(type_) and type_.precision <= 38 and type_.scale >= 0:
        return Decimal(type_.precision, type_.scale)
    if kinds.is_fixed_size_binary(type_):
        return Fixed(type_.byte_width)
    if str(type_) == "extension<arrow.uuid>":
        return Primitive("uuid")
    if kinds.is_uint64(type_):
        return Decimal(20, 0)
    if kinds.is_integer(type_):
        is_wide = type_.bit_width == 64 or kinds.is_uint32(type_)
        return Primitive("long" if is_wide else _WIDTHS[type_.bit_width])
    if kinds.is_timestamp(type_):
        fine = "_ns" if type_.unit == "ns" else ""
        return Primitive(f"timestamp{'tz' if type_.tz else ''}{fine}")
    for accepts, name in _SIMPLE:
        if getattr(kinds, accepts)(type_):
            return Primitive(name)
    raise UsageError(
        f"Iceberg has no type for column `{path}`, which is {type_}", "convert the column, or leave it out"
    )


_SIMPLE = (
    ("is_boolean", "boolean"),
    ("is_float16", "float"),
    ("is_float32", "float"),
    ("is_float64", "double"),
    ("is_date", "date"),
    ("is_time", "time"),
    ("is_string", "string"),
    ("is_large_string", "string"),
    ("is_string_view", "string"),
    ("is_binary", "binary"),
    ("is_large_binary", "binary"),
    ("is_binary_view", "binary"),
    ("is_null", "string"),
)
"""Predicates of ``pyarrow.types``, each with the type in Iceberg; a column of nulls becomes a text."""


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
