"""Rows of a table as one Parquet data file, by the table's current schema.

Specification, `Appendix A: Parquet <https://iceberg.apache.org/spec/#parquet>`_.  The rows of the history are
few, so they are converted one by one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any

from icemigrate.errors import EngineError, MissingExtra, extra_hint
from icemigrate.iceberg.metadata_parts import current_schema
from icemigrate.iceberg.types import Decimal, Field, Fixed, List, Map, Primitive, Struct, Type
from icemigrate.metadata_engine.parquet_metrics import describe_data_file
from icemigrate.metadata_engine.parquet_values import UnfitValue, stored_field, stored_value
from icemigrate.metadata_engine.snapshot_files import DataFile
from icemigrate.metadata_engine.table_store import FileStore, Json


def write_rows(metadata: Json, files: FileStore, rows: Sequence[Mapping[str, Any]]) -> DataFile:
    """Write a data file.

    :param metadata: of an unpartitioned table.
    :param rows: at least one; values by column, as :mod:`~icemigrate.metadata_engine.parquet_values`
        describes them.  A column that a row lacks has its write default, or null.
    :raises EngineError: the table has no such column or a column cannot have a value, or the file cannot be
        written.
    :raises MissingExtra: pyarrow is not installed.
    """
    assert rows, "a snapshot without rows needs no file"
    columns = current_schema(metadata).fields
    place = metadata["location"].rstrip("/")
    try:
        stored_rows = [_stored_row(columns, row) for row in rows]
    except UnfitValue as error:
        raise EngineError(f"a row does not fit the table at {place}: {error}") from error
    stored = tuple(found for column in columns if (found := stored_field(column)) is not None)
    content = _parquet(stored, stored_rows)
    properties = metadata.get("properties") or {}
    folder = properties.get("write.data.path", f"{place}/data").rstrip("/")
    # Partition, task, operation and number of the file, as in Java's `OutputFileFactory`.
    location = f"{folder}/00000-0-{uuid.uuid4()}-00001.parquet"
    written = describe_data_file(location, content, stored, stored_rows, metadata)
    files.write(location, content)
    return written


def _stored_row(columns: Sequence[Field], row: Mapping[str, Any]) -> dict[str, Any]:
    names = {column.name for column in columns}
    if unknown := [name for name in row if name not in names]:
        raise UnfitValue(f"it has no column `{unknown[0]}`")
    return {c.name: stored_value(c, row.get(c.name, c.write_default), c.name) for c in columns}


def _parquet(fields: Sequence[Field], rows: Sequence[Mapping[str, Any]]) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("pyarrow is not installed", extra_hint("metadata")) from error
    schema = pa.schema([_arrow_field(f) for f in fields])
    stream = BytesIO()
    pq.write_table(
        pa.Table.from_pylist(list(rows), schema),
        stream,
        row_group_size=len(rows),
        compression="zstd",
        store_schema=False,  # Arrow's own schema, which readers of Iceberg's tables do not use
        store_decimal_as_integer=True,
    )
    return stream.getvalue()


def _arrow_field(field: Field) -> Any:
    import pyarrow as pa

    metadata = {"PARQUET:field_id": str(field.id)}
    return pa.field(field.name, _arrow_type(field.type), nullable=not field.required, metadata=metadata)


def _arrow_type(type_: Type) -> Any:
    import pyarrow as pa

    if isinstance(type_, Struct):
        return pa.struct([_arrow_field(f) for f in type_.fields])
    if isinstance(type_, List):
        return pa.list_(_arrow_field(type_.element))
    if isinstance(type_, Map):
        return pa.map_(_arrow_field(type_.key), _arrow_field(type_.value))
    if isinstance(type_, Decimal):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, Fixed):
        return pa.binary(type_.length)
    assert isinstance(type_, Primitive), "a stored field has one of these types"
    simple: Mapping[str, Callable[[], Any]] = {
        "boolean": pa.bool_,
        "int": pa.int32,
        "long": pa.int64,
        "float": pa.float32,
        "double": pa.float64,
        "date": pa.date32,
        "time": lambda: pa.time64("us"),
        "timestamp": lambda: pa.timestamp("us"),
        "timestamptz": lambda: pa.timestamp("us", "UTC"),
        "timestamp_ns": lambda: pa.timestamp("ns"),
        "timestamptz_ns": lambda: pa.timestamp("ns", "UTC"),
        "string": pa.string,
        # Releases before 18 have no type for it.
        "uuid": getattr(pa, "uuid", lambda: pa.binary(16)),
        "binary": pa.binary,
    }
    return simple[type_.name]()
