"""Data of this process as a source of rows: Arrow, frames of other libraries, and mappings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icemigrate.errors import UsageError
from icemigrate.table_data.input_files import require_pyarrow
from icemigrate.table_data.load_target import require_distinct
from icemigrate.table_data.mapping_rows import ColumnMappingSource, MappingSource, require_equal_lengths
from icemigrate.table_data.row_sources import GIVEN_DATA, ArrowSource, RowSource


def given_source(data: Any) -> RowSource:
    """The source of some data.

    :raises UsageError: it is of a kind that is not known, or its library or Arrow cannot convert it.
    """
    require_pyarrow()
    import pyarrow as pa

    if isinstance(data, Mapping):
        return _mapping_source(data, pa)
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
    except UsageError:
        raise
    except Exception as error:  # a lazy frame computes its rows here, and each library has errors of its own
        # Arrow names the column in a second text; errors of Spark have none.
        parts = [str(part).partition("\n")[0] for part in error.args or (error,)]
        reason = ": ".join(parts).strip() or type(error).__name__
        raise UsageError(
            f"the rows of the {type(data).__name__} cannot be read: {reason}",
            "give each column values of one type that Arrow has",
        ) from error
    if table is None:
        raise UsageError(
            f"rows cannot be read from a {type(data).__name__}",
            "pass an Arrow table, a frame of pandas, Polars, PySpark or DuckDB, or a list of mappings",
        )
    return ArrowSource(table)


def _mapping_source(data: Mapping[Any, Any], pa: Any) -> RowSource:
    """The source of one row, or of columns.

    :raises UsageError: arrays of Arrow differ in their number of rows.
    """
    if data and all(isinstance(values, (pa.Array, pa.ChunkedArray)) for values in data.values()):
        require_equal_lengths(data)
        return ArrowSource(pa.table(list(data.values()), names=list(map(str, data))))
    is_by_column = bool(data) and all(_is_column(values, pa) for values in data.values())
    return ColumnMappingSource(data) if is_by_column else MappingSource([data])


def _is_column(values: Any, pa: Any) -> bool:
    """Whether the value of a mapping has the values of a column."""
    if isinstance(values, (str, bytes, bytearray, memoryview, Mapping)):
        return False
    if isinstance(values, (Sequence, pa.Array, pa.ChunkedArray)):
        return True
    # A scalar of NumPy is an array without a dimension.
    return hasattr(values, "__array__") and len(getattr(values, "shape", ())) > 0


def _arrow_table(data: Any, pa: Any) -> Any:
    """The data as ``pyarrow.Table``; ``None`` where it is of another kind."""
    library, kind = type(data).__module__.partition(".")[0], type(data).__name__
    if library in ("pandas", "polars", "pyspark") and not kind.endswith("Frame"):
        return None  # a single column has no name that is sure
    if library == "pandas":
        return _pandas_table(data, pa)
    if library == "polars":
        return _polars_table(data)
    if library == "pyspark":
        # An attribute of a frame of Spark may be a column, so its class is asked.
        return _spark_table(data.to_spark() if hasattr(type(data), "to_spark") else data, pa)
    if library in ("duckdb", "_duckdb"):
        return data.to_arrow_table()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data).read_all()
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, Sequence)):
        rows = list(data)
        if rows and all(isinstance(row, pa.RecordBatch) for row in rows):
            return pa.Table.from_batches(rows)
    return None


def _pandas_table(frame: Any, pa: Any) -> Any:
    """The columns of a frame without its index; ``NaN`` is null, as pandas has it for missing values.

    :raises UsageError: two columns have the same name.
    """
    require_distinct(list(map(str, frame.columns)), GIVEN_DATA)  # Arrow's error has no advice for it
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def _spark_table(frame: Any, pa: Any) -> Any:
    """The rows of a frame, collected into this process.

    :raises UsageError: the frame is one of Spark Connect before Spark 4, which has no Arrow data.
    """
    # Arrow refuses a null struct whose fields cannot be null, which Spark's literals have.
    loose = json.loads(frame.schema.json(), object_hook=_nullable)
    frame = frame.to(type(frame.schema).fromJson(loose))
    if hasattr(type(frame), "toArrow"):
        return frame.toArrow()
    if not hasattr(type(frame), "_collect_as_arrow"):
        raise UsageError(
            "a frame of Spark Connect before Spark 4 gives no Arrow data",
            "pass `frame.toPandas()`, or use Spark 4",
        )
    # Spark 3.5 has no public method; without rows it gives no batch.
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches, None if batches else to_arrow_schema(frame.schema))


def _nullable(part: dict[str, Any]) -> dict[str, Any]:
    keys = ("nullable", "containsNull", "valueContainsNull")
    return part | {key: True for key in keys if key in part}


def _polars_table(frame: Any) -> Any:
    """The columns of a frame, which is computed where it is lazy.

    :raises UsageError: a column has Python objects, of which Arrow would get the addresses.
    """
    frame = frame.collect() if hasattr(frame, "collect") else frame
    for name, type_ in frame.schema.items():
        if str(type_) == "Object":
            raise UsageError(
                f"column `{name}` of the data has Python objects",
                "convert the column to a type of Polars, such as `String`",
            )
    return frame.to_arrow()
