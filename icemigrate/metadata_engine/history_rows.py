"""Rows of a table as one Parquet data file, by the table's current schema.

Specification, `Appendix A: Parquet <https://iceberg.apache.org/spec/#parquet>`_.  The rows of the history are
few, so they are converted one by one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from icemigrate.errors import EngineError, MissingExtra, extra_hint
from icemigrate.iceberg.arrow_types import arrow_schema
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.metadata_parts import current_schema
from icemigrate.iceberg.types import Field
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.parquet_metrics import count_nans, describe_data_file
from icemigrate.metadata_engine.parquet_values import UnfitValue, stored_field, stored_value
from icemigrate.metadata_engine.table_store import FileStore


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
    written = describe_data_file(location, content, stored, metadata, count_nans(stored, stored_rows))
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
    schema = arrow_schema(fields)
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
