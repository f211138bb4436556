"""The values of a column of a foreign Parquet file: from its statistics, or read where these do not suffice.

A value has the form that a manifest has for partitions: numbers count days or microseconds since 1970.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Sequence
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.iceberg.arrow_types import arrow_type
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.types import Decimal, Field, List, Map, Primitive, Struct, Type
from icemigrate.metadata_engine.parquet_metrics import MetricColumn, footer_bounds
from icemigrate.table_data.adopted_files import open_parquet
from icemigrate.wal.storage_path import AnyPath

_TEMPORAL = ("date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")


class ColumnRange(Frozen):
    """The values of a column in a file.

    :param count: with nulls.
    :param low: a value that none is below; ``None`` without values.
    :param high: a value that none is above.
    :param is_exact: whether the two are values of the column.
    """

    count: int
    nulls: int
    low: Any = None
    high: Any = None
    is_exact: bool = True

    @property
    def is_null(self) -> bool:
        """Whether the column has no value."""
        return self.nulls == self.count


def footer_range(footer: Any, number: int, column: MetricColumn) -> ColumnRange | None:
    """The range that statistics prove; ``None`` where they do not.

    :param footer: ``pyarrow.parquet.FileMetaData``.
    :param number: of the column in the file.
    """
    chunks = [footer.row_group(group).column(number) for group in range(footer.num_row_groups)]
    statistics = [chunk.statistics for chunk in chunks]
    if any(one is None or not one.has_null_count for one in statistics):
        return None
    count, nulls = footer.num_rows, sum(one.null_count for one in statistics)
    if nulls == count:
        return ColumnRange(count, nulls)
    bounds = footer_bounds(column, statistics, chunks)
    if bounds is None:
        return None
    low, high = (_stored_bound(column.field.type, bound) for bound in bounds)
    # Writers shorten long texts in statistics.
    return ColumnRange(count, nulls, low, high, is_exact=not isinstance(low, (str, bytes)))


def read_range(path: AnyPath, number: int, column: MetricColumn) -> ColumnRange:
    """The range of a column's values.

    :param number: of the column in the file.
    """
    import pyarrow.compute as pc

    count = nulls = 0
    lows, highs = list[Any](), list[Any]()
    for array in read_values(path, number, column):
        count, nulls = count + len(array), nulls + array.null_count
        found = pc.min_max(array).as_py()
        lows += [found["min"]] if found["min"] is not None else []
        highs += [found["max"]] if found["max"] is not None else []
    return ColumnRange(count, nulls, min(lows, default=None), max(highs, default=None))


def read_values(path: AnyPath, number: int, column: MetricColumn) -> Iterator[Any]:
    """The values of a column that is not inside a list or a map, as Arrow arrays of stored values."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    type_ = column.field.type
    with open_parquet(path) as source, pq.ParquetFile(source) as file:
        name = file.schema.column(number).path
        for batch in file.iter_batches(columns=[name]):
            array = batch.column(0)
            while pa.types.is_struct(array.type):
                array = pc.struct_field(array, 0)
            if isinstance(type_, Primitive) and type_.name in _TEMPORAL:
                array = array.cast(arrow_type(type_), safe=False)
                array = array.cast(pa.int32() if type_.name == "date" else pa.int64())
            elif type_ != Primitive("uuid"):
                array = array.cast(arrow_type(type_))
            yield array


def missing_values(
    path: AnyPath, loose: Sequence[FieldPath], columns: Sequence[Field]
) -> Iterator[FieldPath]:
    """The paths of fields that the table requires and rows of a file lack.

    :param loose: the paths to look at.
    :param columns: of the table.
    """
    import pyarrow.parquet as pq

    names = dict.fromkeys(one[0] for one in loose)
    fields = {field.name: field for field in columns}
    with open_parquet(path) as source, pq.ParquetFile(source) as file:
        found = set[FieldPath]()
        for batch in file.iter_batches(columns=list(names)):
            for name in names:
                found.update(_missing(batch.column(name), fields[name], (name,)))
    yield from (one for one in loose if one in found)


def _missing(array: Any, field: Field, path: FieldPath) -> Iterator[FieldPath]:
    if array.null_count:
        if field.required:
            yield path
        array = array.drop_null()
    type_ = field.type
    if isinstance(type_, Struct):
        for inner in type_.fields:
            if array.type.get_field_index(inner.name) >= 0:
                yield from _missing(array.field(inner.name), inner, (*path, inner.name))
    elif isinstance(type_, List):
        yield from _missing(array.flatten(), type_.element, (*path, type_.element.name))
    elif isinstance(type_, Map):
        yield from _missing(array.items, type_.value, (*path, type_.value.name))


def scaled_decimal(type_: Decimal, value: Any, exponent: int) -> decimal.Decimal:
    """A number of a type times a power of ten, with all digits: the default context of Python has 28."""
    return decimal.Decimal(value).scaleb(exponent, decimal.Context(prec=2 * type_.precision))


def _stored_bound(type_: Type, value: Any) -> Any:
    if isinstance(type_, Decimal):
        return scaled_decimal(type_, value, -type_.scale)
    return value.decode() if type_ == Primitive("string") else value
