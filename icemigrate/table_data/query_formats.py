"""The rows of a query as CSV, JSON or Parquet, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from icemigrate.hidden_characters import escaped_json
from icemigrate.table_data.query_values import json_values

if TYPE_CHECKING:
    import pyarrow as pa


class Batches(Protocol):
    """Batches of rows of one schema."""

    schema: Any

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batches in order."""
        ...


def csv_parts(batches: Batches) -> Iterator[bytes]:
    """A heading, then a line for each row, in UTF-8 (RFC 4180).

    Texts are in double quotes and nulls are empty, so that an empty text differs from a null.  A column of
    lists, maps or structs has JSON.
    """
    # Python writes the lines: Arrow's writer takes texts as arrays, and to make one imports pandas (0.2 s).
    yield (",".join(map(_quoted, batches.schema.names)) + "\n").encode("utf-8")
    for batch in batches:
        cells = [_csv_cells(column) for column in batch.columns]
        lines = "".join(f"{','.join(row)}\n" for row in zip(*cells, strict=True))
        yield lines.encode("utf-8", errors="backslashreplace")


def _csv_cells(column: pa.Array) -> list[str]:
    """A column as CSV has it; numbers are the shortest texts that read as the same number."""
    import pyarrow as pa

    kind, values = column.type, json_values(column)
    if pa.types.is_boolean(kind):
        return ["" if v is None else "true" if v else "false" for v in values]
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return ["" if v is None else str(v) for v in values]
    if pa.types.is_nested(kind):
        values = [None if v is None else json.dumps(v, ensure_ascii=False) for v in values]
    return ["" if v is None else _quoted(v) if isinstance(v, str) else repr(v) for v in values]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def json_parts(batches: Batches) -> Iterator[bytes]:
    """One array of objects, with a line for each row.

    See :func:`~icemigrate.table_data.query_values.json_values` for the values.
    """
    before, names = "[\n", batches.schema.names
    for batch in batches:
        lines = []
        for row in row_values(batch):
            lines.append(before + json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False))
            before = ",\n"
        yield escaped_json("".join(lines)).encode("utf-8", errors="backslashreplace")
    yield b"[]\n" if before == "[\n" else b"\n]\n"


def row_values(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """The rows of a batch, in values of JSON."""
    return list(zip(*(json_values(column) for column in batch.columns), strict=True))


def write_parquet(batches: Batches, stream: BinaryIO) -> None:
    """A Parquet file, compressed with zstd."""
    import pyarrow as pa
    from pyarrow import parquet

    file = pa.PythonFile(stream, mode="w")
    with parquet.ParquetWriter(file, batches.schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


TEXT_FORMATS = {"csv": csv_parts, "json": json_parts}
