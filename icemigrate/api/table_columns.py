"""A new table, from the forms in which Python has a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from icemigrate.errors import Mistakes, UsageError
from icemigrate.files.write.entry_parts import column_entry
from icemigrate.frozen import replace
from icemigrate.table_data.new_table import create_declared, table_from_yaml
from icemigrate.table_data.schema_inference import schema_from_arrow
from icemigrate.table_data.table_session import TableSession


def create_from_entry(tables: TableSession, name: str, schema: Any, settings: Mapping[str, Any]) -> None:
    """Create a table, and its namespace where it is missing.

    :param schema: see :func:`column_entries`.
    :param settings: further keys of a table's entry in a migration file.
    :raises UsageError: the name is invalid or reserved, the table exists, or the schema is of another kind.
    :raises Mistakes: the table would break a rule; the first one is in the message.
    """
    declared = tables.parse(name)
    entry = {"columns": column_entries(schema), **settings}
    try:
        create_declared(tables, declared, table_from_yaml(declared, json.dumps(entry, default=str), name))
    except Mistakes as error:
        alone = tuple(replace(found, place=None) for found in error.diagnostics)
        raise Mistakes(alone, f"cannot create table `{declared}`: {alone[0].message}") from None


def column_entries(schema: Any) -> list[Mapping[str, Any]]:
    """The columns of a schema, as the ``columns`` of a migration file.

    :param schema: types by name, such as ``{"id": "long"}``; a list of columns as in a migration file; a
        schema of Arrow or PySpark; or a table or frame of a library that exports Arrow data.
    :raises UsageError: it is none of these, or a column has a type that Iceberg lacks.
    """
    import pyarrow as pa

    if isinstance(schema, Mapping) and all(isinstance(type_, str) for type_ in schema.values()):
        return [{"name": name, "type": type_} for name, type_ in schema.items()]
    if isinstance(schema, (list, tuple)) and all(
        isinstance(one, Mapping) and "name" in one for one in schema
    ):
        return list(schema)
    if type(schema).__module__.startswith("pyspark.sql.types"):
        return [
            {"name": f.name, "type": f.dataType.simpleString(), "required": not f.nullable} for f in schema
        ]
    if hasattr(schema, "__arrow_c_schema__"):
        arrow = pa.schema(schema)
    elif hasattr(schema, "__arrow_c_stream__"):
        arrow = pa.RecordBatchReader.from_stream(schema).schema
    else:
        raise UsageError(
            f"a {type(schema).__name__} is no schema",
            "pass types by name, a list of columns as in a migration file, or a schema of Arrow or PySpark",
        )
    return [column_entry(field) for field in schema_from_arrow(arrow).fields]
