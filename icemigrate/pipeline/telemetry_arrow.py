"""Rows of telemetry as Arrow, with the columns and types of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icemigrate.iceberg.arrow_types import arrow_schema
from icemigrate.iceberg.types import Field, List, Map, Struct, Type
from icemigrate.otlp.telemetry_rows import TelemetryRow


class UnsuitableTable(Exception):
    """A table whose columns cannot have the rows; the text says which column, and why."""


def rows_table(rows: Sequence[TelemetryRow], columns: Sequence[Field]) -> Any:
    """The rows as ``pyarrow.Table``; columns that rows do not have are null.

    :param rows: at least one, all of the same kind.
    :param columns: the stored ones of the table.
    :raises UnsuitableTable: a column has another type, or is required and has no value.
    """
    import pyarrow as pa

    schema = arrow_schema(columns)
    arrays = []
    for column, field in zip(columns, schema, strict=True):
        values = [_arrow_value(row.get(column.name), column.type) for row in rows]
        if column.required and any(value is None for value in values):
            raise UnsuitableTable(f"column `{column.name}` is required, and rows have no value of it")
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            reason = str(error).partition("\n")[0]
            raise UnsuitableTable(f"column `{column.name}` has another type: {reason}") from None
    return pa.Table.from_arrays(arrays, schema=schema)


def _arrow_value(value: Any, type_: Type) -> Any:
    """A value in the form that Arrow converts: a map is a list of pairs."""
    if value is None:
        return None
    if isinstance(type_, Map) and isinstance(value, dict):
        return [(key, _arrow_value(one, type_.value.type)) for key, one in value.items()]
    if isinstance(type_, List) and isinstance(value, list):
        return [_arrow_value(one, type_.element.type) for one in value]
    if isinstance(type_, Struct) and isinstance(value, dict):
        return {field.name: _arrow_value(value.get(field.name), field.type) for field in type_.fields}
    return value
