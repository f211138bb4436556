"""Parquet files that are encoded row group by row group, so that their rows need not be in memory together.

An open file is in memory as encoded bytes, about an eighth of its rows.  A complete one is handed over, and
released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.types import Field, Fixed, List, Map, children, is_nested
from icemigrate.metadata_engine.parquet_metrics import count_arrow_nans
from icemigrate.pipeline.telemetry_arrow import UnsuitableTable

LARGEST_FILE = 32 * 1024 * 1024
"""In bytes, as they are encoded: about 256 MiB of telemetry in memory."""
_LARGEST_OPEN = 2 * LARGEST_FILE
"""In bytes, of all open files together."""
_MOST_OPEN = 100
Key = TypeVar("Key")


class EncodedFile(Frozen):
    """A complete Parquet file.

    :param nan_counts: numbers of values that are not a number, by column.
    """

    content: bytes
    rows: int
    nan_counts: Mapping[FieldPath, int]


class RowGroupFiles(Generic[Key]):
    """Files of rows with the same columns, one open file for each key.

    :param columns: of the rows, which decide what a file has beside them.
    :param schema: of the files, as ``pyarrow.Schema``.
    :param write: stores a complete file.
    :param compression: as ``pyarrow.parquet.ParquetWriter`` names it.
    :param largest_file: in bytes; the row group that reaches it is the last one.
    :param has_metadata: whether files have the metadata of the schema, too.
    """

    def __init__(
        self,
        columns: Sequence[Field],
        schema: Any,
        write: Callable[[Key, EncodedFile], None],
        compression: str = "zstd",
        largest_file: int = LARGEST_FILE,
        has_metadata: bool = False,
    ) -> None:
        self._columns, self._schema, self._write = columns, schema, write
        self._compression, self._largest_file = compression, largest_file
        self._has_metadata = has_metadata
        self._open = dict[Key, _OpenFile]()

    def add(self, key: Key, rows: Any) -> None:
        """Add rows to the file of a key, as one row group.

        :param rows: ``pyarrow.Table``.
        :raises UnsuitableTable: a field that requires a value has none.
        """
        if key not in self._open:
            if len(self._open) == _MOST_OPEN:
                self._complete(next(iter(self._open)))
            self._open[key] = _OpenFile(self._columns, self._schema, self._compression, self._has_metadata)
        self._open[key].add(rows)
        if self._open[key].size >= self._largest_file:
            self._complete(key)
        while sum(one.size for one in self._open.values()) >= _LARGEST_OPEN:
            self._complete(max(self._open, key=lambda one: self._open[one].size))

    def complete(self) -> None:
        """Complete all files."""
        while self._open:
            self._complete(next(iter(self._open)))

    def discard(self) -> None:
        """Forget the files that are not complete."""
        self._open = {}

    def _complete(self, key: Key) -> None:
        self._write(key, self._open.pop(key).end())


class _OpenFile:
    def __init__(self, columns: Sequence[Field], schema: Any, compression: str, has_metadata: bool) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._stream, self._columns = pa.BufferOutputStream(), columns
        self._writer = pq.ParquetWriter(
            self._stream,
            schema,
            compression=compression,
            use_dictionary=[path for column in columns for path in _dictionaries(column)],
            store_schema=has_metadata,
            store_decimal_as_integer=True,
        )
        self._rows, self._nan_counts = 0, dict[FieldPath, int]()

    @property
    def size(self) -> int:
        """In bytes, so far."""
        return int(self._stream.tell())

    def add(self, rows: Any) -> None:
        import pyarrow as pa

        try:
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        except pa.ArrowInvalid:
            # Arrow's text can have values of the tenant.
            reason = "a field inside a column is required, and rows have no value of it"
            raise UnsuitableTable(reason) from None
        self._rows += rows.num_rows
        for path, count in count_arrow_nans(self._columns, rows).items():
            self._nan_counts[path] = self._nan_counts.get(path, 0) + count

    def end(self) -> EncodedFile:
        self._writer.close()
        return EncodedFile(self._stream.getvalue().to_pybytes(), self._rows, self._nan_counts)


def _dictionaries(field: Field, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The columns of a Parquet file that get a dictionary: all but ids, of which no two are equal."""
    line = (*path, *_names_in_parquet(field))
    if is_nested(field.type):
        for child in children(field.type):
            yield from _dictionaries(child, line)
    elif not isinstance(field.type, Fixed):
        yield ".".join(line)


def _names_in_parquet(field: Field) -> tuple[str, ...]:
    """The names that Parquet has for a field below its parent: lists and maps have one more level."""
    if isinstance(field.type, List):
        return (field.name, "list")
    return (field.name, "key_value") if isinstance(field.type, Map) else (field.name,)
