"""The metrics of a data file, from the footer of its Parquet file, as Java's ``ParquetMetrics`` has them.

Columns inside lists and maps have a size and no other metrics.  The mode of a column is a property of the
table (Iceberg's documentation, `Write properties
<https://iceberg.apache.org/docs/latest/configuration/#write-properties>`_).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import Any

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.types import Decimal, Field, Primitive, Struct, Type, children, is_nested
from icemigrate.metadata_engine.data_files import DataFile

_DEFAULT_MODE = "truncate(16)"
_NUMBERS = {"boolean": "<?", "int": "<i", "date": "<i", "float": "<f", "double": "<d"}
_LONG = "<q"
"""The formats of numbers in a bound; all others are of eight bytes, and count units since a start."""
_TEXTS = (Primitive("string"), Primitive("binary"))
_FLOATS = (Primitive("float"), Primitive("double"))


class MetricColumn(Frozen):
    """A column of a Parquet file that a field of a table has its values in.

    :param path: the names of the table's fields, from the column down.
    :param is_repeated: whether it is inside a list or a map.
    :param unit: what one of its numbers is in the unit of the table: 1000 for milliseconds.
    :param has_bounds: whether its statistics have the order of the field's type.
    """

    field: Field
    path: FieldPath
    is_repeated: bool
    unit: int = 1
    has_bounds: bool = True


def describe_data_file(
    location: str,
    content: bytes | Path,
    fields: Sequence[Field],
    metadata: Json,
    nan_counts: Mapping[FieldPath, int] | None = None,
) -> DataFile:
    """What a manifest says about a Parquet file.

    :param content: of the file, or the path of a copy on this machine.
    :param fields: that the file has, in order.
    :param metadata: of the table, whose properties choose the metrics.
    :param nan_counts: numbers of values that are not a number, by column.  Without one for a column, its
        bounds prove that there are none: as DuckDB's writer does, the writer gives no bounds where there are
        some.  Arrow's writer skips such values, so they have to be counted.
    """
    import pyarrow.parquet as pq

    source = content.open("rb") if isinstance(content, Path) else BytesIO(content)
    with source:
        footer = pq.ParquetFile(source).metadata
        size = source.seek(0, SEEK_END)
    columns = enumerate(_columns(fields))
    proven = {c.path: 0 for c in _columns(fields) if c.field.type in _FLOATS} | dict(nan_counts or {})
    return describe_footer(location, size, footer, columns, metadata, proven)


def describe_footer(
    location: str,
    size: int,
    footer: Any,
    columns: Iterable[tuple[int, MetricColumn]],
    metadata: Json,
    nan_counts: Mapping[FieldPath, int],
) -> DataFile:
    """What a manifest says about a Parquet file of any writer.

    :param size: of the file, in bytes.
    :param footer: ``pyarrow.parquet.FileMetaData``.
    :param columns: those that the table has, each with its number in the file.
    :param metadata: of the table, whose properties choose the metrics.
    :param nan_counts: numbers of values that are not a number, by column, where there are bounds.
    """
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    out = DataFile(location, size, footer.num_rows)
    sizes, counts, nulls, nans = (dict[int, int]() for _ in range(4))
    lower, upper = dict[int, bytes](), dict[int, bytes]()
    for number, column in columns:
        key, type_ = column.field.id, column.field.type
        length = _bound_length(metadata.get("properties") or {}, column.path)
        if length is None:
            continue
        chunks = [group.column(number) for group in groups]
        sizes[key] = sum(chunk.total_compressed_size for chunk in chunks)
        found = [chunk.statistics for chunk in chunks]
        if column.is_repeated or any(statistics is None for statistics in found):
            continue
        counts[key] = sum(chunk.num_values for chunk in chunks)
        nulls[key] = sum(statistics.null_count for statistics in found)
        bounds = footer_bounds(column, found, chunks)
        if type_ in _FLOATS:
            known = nan_counts.get(column.path)
            if known is not None and (known or bounds or nulls[key] == counts[key]):
                nans[key] = known
        # Arrow writes no bounds of long values.
        if length and bounds:
            lower[key] = lower_bound(type_, bounds[0], length)
            if (highest := upper_bound(type_, bounds[1], length)) is not None:
                upper[key] = highest
    starts = tuple(_start(group) for group in groups)
    return replace(
        out, column_sizes=sizes, value_counts=counts, null_counts=nulls, nan_counts=nans,
        lower_bounds=lower, upper_bounds=upper, split_offsets=starts,
    )  # fmt: skip


def footer_bounds(
    column: MetricColumn, statistics: Sequence[Any], chunks: Sequence[Any]
) -> tuple[Any, Any] | None:
    """The lowest and highest value of all row groups; ``None`` where one has values without bounds.

    :param statistics: of the chunks.
    :param chunks: of the column, one for each row group.
    """
    type_ = column.field.type
    if not column.has_bounds:
        return None
    lows, highs = [], []
    for found, chunk in zip(statistics, chunks, strict=True):
        if found.has_min_max:
            lows.append(_comparable(type_, found.min_raw))
            highs.append(_comparable(type_, found.max_raw))
        elif found.null_count < chunk.num_values:
            return None
    if not lows:
        return None
    low, high = min(lows), max(highs)
    if type_ in _FLOATS:
        # Of two zeros, the negative one is lower: a writer may not distinguish them.
        low, high = low if low else -0.0, high if high else 0.0
    return (low, high) if column.unit == 1 else (low * column.unit, high * column.unit)


def _comparable(type_: Type, value: Any) -> Any:
    """A value of statistics in the order of its type: a decimal may have the form of bytes."""
    is_bytes = isinstance(type_, Decimal) and isinstance(value, bytes)
    return int.from_bytes(value, "big", signed=True) if is_bytes else value


def _start(group: Any) -> int:
    """Where a row group begins: a dictionary, where a column has one, is before its data."""
    first = group.column(0)
    return int(first.dictionary_page_offset or first.data_page_offset)


def _columns(
    fields: Sequence[Field], path: FieldPath = (), is_repeated: bool = False
) -> Iterator[MetricColumn]:
    """The columns that Parquet has for fields, in the order of the file."""
    for field in fields:
        line = (*path, field.name)
        if is_nested(field.type):
            inside = is_repeated or not isinstance(field.type, Struct)
            yield from _columns(children(field.type), line, inside)
        else:
            yield MetricColumn(field, line, is_repeated)


def _bound_length(properties: Mapping[str, str], path: FieldPath) -> int | None:
    """How many characters or bytes a bound has: 0 for counts only; ``None`` where there are no metrics.

    A mode that Java's library does not know is the default there too.
    """
    default = properties.get("write.metadata.metrics.default", _DEFAULT_MODE)
    mode = properties.get(f"write.metadata.metrics.column.{'.'.join(path)}", default).lower()
    if mode in ("none", "counts", "full"):
        return {"none": None, "counts": 0, "full": 2**31 - 1}[mode]
    match = re.fullmatch(r"truncate\(([0-9]{1,9})\)", mode)
    return int(match[1]) if match else 16


def count_nans(fields: Sequence[Field], rows: Sequence[Mapping[str, Any]]) -> dict[FieldPath, int]:
    """The numbers of values that are not a number, by column, for :func:`describe_data_file`."""
    columns = (c for c in _columns(fields) if c.field.type in _FLOATS and not c.is_repeated)
    return {c.path: sum(_is_nan(row, c.path) for row in rows) for c in columns}


def count_arrow_nans(fields: Sequence[Field], table: Any) -> dict[FieldPath, int]:
    """The numbers of a ``pyarrow.Table``, whose columns are the fields; see :func:`count_nans`."""
    import pyarrow.compute as pc

    counts = dict[FieldPath, int]()
    for column in _columns(fields):
        if column.field.type not in _FLOATS or column.is_repeated:
            continue
        first, *inner = column.path
        values = table[first]
        for name in inner:
            values = pc.struct_field(values, [name])
        counts[column.path] = pc.sum(pc.is_nan(values)).as_py() or 0
    return counts


def _is_nan(row: Mapping[str, Any], path: FieldPath) -> bool:
    value: Any = row
    for name in path:
        value = None if value is None else value[name]
    return value is not None and math.isnan(value)


def lower_bound(type_: Type, value: Any, length: int) -> bytes:
    """A value, or less, in the binary form of the specification's Appendix D.

    :param value: as Parquet's statistics have it: a number, or bytes.
    :param length: of a text in characters, of a binary value in bytes.
    """
    if type_ not in _TEXTS:
        return _exact_bound(type_, value)
    return _prefix(value, length, is_text=type_ == Primitive("string"))


def upper_bound(type_: Type, value: bytes, length: int) -> bytes | None:
    """A value, or more; ``None`` where no text of this length is larger.  See :func:`lower_bound`."""
    if type_ not in _TEXTS:
        return _exact_bound(type_, value)
    is_text = type_ == Primitive("string")
    prefix = _prefix(value, length, is_text)
    if prefix == value:
        return value
    return _next_text(prefix.decode()) if is_text else _next_bytes(prefix)


def _prefix(value: bytes, length: int, is_text: bool) -> bytes:
    return value.decode()[:length].encode() if is_text else value[:length]


def _next_text(text: str) -> bytes | None:
    """The next larger text that is not longer; halves of surrogate pairs are no characters."""
    while text:
        following = ord(text[-1]) + 1
        text = text[:-1]
        if following <= 0x10FFFF:
            return (text + chr(0xE000 if following == 0xD800 else following)).encode()
    return None


def _next_bytes(value: bytes) -> bytes | None:
    shorter = value.rstrip(b"\xff")
    return shorter[:-1] + bytes([shorter[-1] + 1]) if shorter else None


def _exact_bound(type_: Type, value: Any) -> bytes:
    if isinstance(type_, Decimal):
        unscaled = value if isinstance(value, int) else int.from_bytes(value, "big", signed=True)
        bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
        return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)
    if isinstance(value, bytes):
        return value  # a uuid, or of a fixed length
    assert isinstance(type_, Primitive), "all others are numbers"
    return struct.pack(_NUMBERS.get(type_.name, _LONG), value)
