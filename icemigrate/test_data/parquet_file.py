"""Rows of test data as a Parquet file, by the Rust module if it is installed, otherwise by Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import BinaryIO, Literal, TypeAlias

from icemigrate.errors import MissingExtra, extra_hint
from icemigrate.frozen import Frozen
from icemigrate.iceberg.arrow_types import arrow_schema
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import schema_to_json
from icemigrate.test_data.columns import record_batch

ROWS_PER_GROUP = 131_072
"""Rows of each row group; memory depends on it, not on the number of rows."""
_DICTIONARY_BYTES = 65_536
_COMPRESSION_LEVEL = 1

GeneratorName: TypeAlias = Literal["native", "arrow"]
_BLOOM_FILTER = "write.parquet.bloom-filter-enabled.column."

Report: TypeAlias = Callable[[int], None]
"""Called with the number of rows that are written, after each row group."""


class RowRange(Frozen):
    """Rows to generate.

    :param first: the number of the first row; the same row has the same values in every range.
    :param count: at least 1.
    :param seed: from 0 to 2**64 - 1.
    """

    first: int
    count: int
    seed: int


def bloom_columns(properties: Mapping[str, str]) -> list[str]:
    """The paths of the columns that get a bloom filter, by the properties of a table."""
    return [
        key.removeprefix(_BLOOM_FILTER)
        for key, value in properties.items()
        if key.startswith(_BLOOM_FILTER) and value.lower() == "true"
    ]


def native_module() -> ModuleType | None:
    """The module ``icemigrate_native``; ``None`` where it is not installed."""
    try:
        import icemigrate_native
    except ImportError:
        return None
    assert isinstance(icemigrate_native, ModuleType)
    return icemigrate_native


def write_rows(
    schema: Schema,
    rows: RowRange,
    stream: BinaryIO,
    report: Report = lambda _rows: None,
    bloom_filters: Collection[str] = (),
) -> GeneratorName:
    """Generate rows and write them.

    :param schema: without :func:`~icemigrate.test_data.schema_checks.unsupported_columns`.
    :param stream: an open file; it stays open.
    :param bloom_filters: paths of the columns that get a bloom filter, such as ``address.city``.
    :returns: which generator wrote them.
    :raises OSError: the stream cannot be written.
    :raises MissingExtra: neither the Rust module nor pyarrow is installed.
    """
    native = native_module()
    if native is None:
        _write_with_arrow(schema, rows, stream, report, bloom_filters)
        return "arrow"
    native.write_parquet(
        json.dumps(schema_to_json(schema)),
        stream.fileno(),
        first_row=rows.first,
        rows=rows.count,
        seed=rows.seed,
        rows_per_group=ROWS_PER_GROUP,
        bloom_filters=sorted(bloom_filters),
        report=report,
    )
    return "native"


def _write_with_arrow(
    schema: Schema, rows: RowRange, stream: BinaryIO, report: Report, bloom_filters: Collection[str]
) -> None:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra(
            "test data needs pyarrow, which is not installed", extra_hint("metadata")
        ) from error
    options = {path: {"ndv": ROWS_PER_GROUP} for path in bloom_filters}
    with pq.ParquetWriter(
        stream,
        arrow_schema(schema.fields),
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        dictionary_pagesize_limit=_DICTIONARY_BYTES,
        store_schema=False,
        store_decimal_as_integer=True,
        **({"bloom_filter_options": options} if options else {}),
    ) as writer:
        for done in range(0, rows.count, ROWS_PER_GROUP):
            count = min(ROWS_PER_GROUP, rows.count - done)
            writer.write_batch(record_batch(schema, rows.seed, rows.first + done, count))
            report(done + count)
