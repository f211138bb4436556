"""What a task of Spark returns for each tenant and kind, and its form in a row of Spark."""

from __future__ import annotations

from typing import Any

import msgspec

from icemigrate.frozen import Frozen
from icemigrate.metadata_engine.data_files import DataFile

FILE_COLUMNS = (
    "table string, tenant string, kind string, files binary, layout string, entries long, rows long, "
    "problem string, stops boolean, quarantined long, future long, staged binary, attributes binary"
)
"""The columns of :class:`TableEntries`, in Spark's syntax."""


class StagedFile(Frozen):
    """A loose Parquet file that a task wrote, and that is not published.

    :param name: in the folder of the batch's staged files.
    :param day: of its rows, as its folder will have it.
    """

    name: str
    day: str
    rows: int


class TableEntries(Frozen):
    """The result of a task for one table.

    :param table: its declared name.
    :param tenant: ``None`` for the quarantine.
    :param files: data files that are written; none if the table has a problem.
    :param layout: of the table that they were written for, see :func:`layout_of`.
    :param problem: why the entries are not written, as a clause.
    :param stops: whether the problem is not one of this table alone, so that the batch stops.
    :param quarantined: further entries of the tenant, which the quarantine gets.
    :param future: entries that are from the future; they are written all the same.
    :param staged: loose Parquet files that are written, and not published.
    :param attributes: counts of those without a column, see
        :func:`~icemigrate.pipeline.attribute_counts.pack_counts`.
    """

    table: str
    tenant: str | None = None
    kind: str | None = None
    files: tuple[DataFile, ...] = ()
    layout: str | None = None
    entries: int = 0
    rows: int = 0
    problem: str | None = None
    stops: bool = False
    quarantined: int = 0
    future: int = 0
    staged: tuple[StagedFile, ...] = ()
    attributes: bytes = b""


def result_batch(result: TableEntries) -> Any:
    """A result as ``pyarrow.RecordBatch`` of one row, with the columns of :data:`FILE_COLUMNS`."""
    import pyarrow as pa

    types = {"string": pa.string(), "binary": pa.binary(), "long": pa.int64(), "boolean": pa.bool_()}
    columns = [column.split() for column in FILE_COLUMNS.split(", ")]
    packed = {"files": msgspec.msgpack.encode(result.files), "staged": msgspec.msgpack.encode(result.staged)}
    values = [packed.get(name, getattr(result, name)) for name, _ in columns]
    arrays = [pa.array([value], types[type_]) for value, (_, type_) in zip(values, columns, strict=True)]
    return pa.record_batch(arrays, names=[name for name, _ in columns])


def read_result(row: Any) -> TableEntries:
    """A row of :data:`FILE_COLUMNS`."""
    files = msgspec.msgpack.decode(bytes(row.files), type=tuple[DataFile, ...])
    staged = msgspec.msgpack.decode(bytes(row.staged), type=tuple[StagedFile, ...])
    decoded = {"files": files, "staged": staged, "attributes": bytes(row.attributes)}
    return TableEntries(**{**row.asDict(), **decoded})
