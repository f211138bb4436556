"""Data files, as manifests describe them.

Specification, `Data File Fields <https://iceberg.apache.org/spec/#data-file-fields>`_.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icemigrate.frozen import Frozen, field

_DATA = 0
_BLOCK_SIZE = 64 * 1024 * 1024
"""What Java's library writes as ``block_size_in_bytes``, which version 1 requires and no reader uses."""
_UNSORTED = 0


class DataFile(Frozen):
    """A new Parquet data file.

    Sizes, counts and bounds are by field id.

    :param path: its location.
    :param size: in bytes.
    :param records: number of its rows.
    :param column_sizes: in bytes, compressed.
    :param value_counts: numbers of values, with nulls.
    :param lower_bounds: no value is smaller; in the binary form of the specification's Appendix D.
    :param upper_bounds: no value is larger.
    :param split_offsets: where its row groups begin.
    :param partition: the values of its partition, one for each field of the default spec, as
        :mod:`~icemigrate.metadata_engine.manifest_partitions` has them.
    :param sort_order_id: of the order in which its rows are; 0 for none.
    """

    path: str
    size: int
    records: int
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_counts: Mapping[int, int] = field(default_factory=dict)
    nan_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()
    partition: tuple[Any, ...] = ()
    sort_order_id: int = _UNSORTED


def data_file_record(file: DataFile, partition: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a data file by name: a version takes those that it has, and the others are null.

    :param partition: its values as a record.
    """

    def pairs(values: Mapping[int, Any]) -> list[dict[str, Any]]:
        return [{"key": key, "value": value} for key, value in values.items()]

    return {
        **{"content": _DATA, "file_path": file.path, "file_format": "PARQUET", "partition": partition},
        **{"record_count": file.records, "file_size_in_bytes": file.size, "block_size_in_bytes": _BLOCK_SIZE},
        **{"column_sizes": pairs(file.column_sizes), "value_counts": pairs(file.value_counts)},
        **{"null_value_counts": pairs(file.null_counts), "nan_value_counts": pairs(file.nan_counts)},
        **{"lower_bounds": pairs(file.lower_bounds), "upper_bounds": pairs(file.upper_bounds)},
        **{"split_offsets": list(file.split_offsets), "sort_order_id": file.sort_order_id},
    }
