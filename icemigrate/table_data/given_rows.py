"""Data of this process as a source of rows: Arrow, frames of other libraries, and mappings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icemigrate.errors import UsageError
from icemigrate.table_data.input_files import require_pyarrow
from icemigrate.table_data.mapping_rows import MappingSource
from icemigrate.table_data.row_sources import ArrowSource, RowSource


def given_source(data: Any) -> RowSource:
    """The source of some data.

    :raises UsageError: it is of a kind that is not known, or Arrow cannot convert it.
    """
    pa = require_pyarrow()
    if isinstance(data, Mapping):
        data = [data]
    if isinstance(data, (list, tuple)) and all(isinstance(row, Mapping) for row in data):
        return MappingSource(data)
    if isinstance(data, pa.RecordBatchReader):
        return ArrowSource(data, is_repeatable=False)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return ArrowSource(data)
    try:
        table = _arrow_table(data, pa)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"Arrow cannot convert the data: {reason}", "give each column one type") from error
    if table is None:
        raise UsageError(
            f"rows cannot be read from a {type(data).__name__}",
            "pass an Arrow table, a frame of pandas, Polars, PySpark or DuckDB, or a list of mappings",
        )
    return ArrowSource(table)


def _arrow_table(data: Any, pa: Any) -> Any:
    """The data as ``pyarrow.Table``; ``None`` where it is of another kind."""
    library = type(data).__module__.partition(".")[0]
    if library == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False).replace_schema_metadata(None)
    if library == "polars":
        return (data.collect() if hasattr(data, "collect") else data).to_arrow()
    if library == "pyspark":
        return data.toArrow()
    if library in ("duckdb", "_duckdb"):
        return data.to_arrow_table()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data).read_all()
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, Sequence)):
        rows = list(data)
        if rows and all(isinstance(row, pa.RecordBatch) for row in rows):
            return pa.Table.from_batches(rows)
    return None
