"""The partitions of Arrow rows, where Arrow can compute them.

Specification, `Partition Transforms <https://iceberg.apache.org/spec/#partition-transforms>`_.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from icemigrate.iceberg.partitioning import VOID, PartitionField
from icemigrate.iceberg.types import Primitive, Type
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.partition_columns import order_sql

_TIMES = (Primitive("timestamp"), Primitive("timestamptz"))
_IDENTITY_TYPES = (*map(Primitive, ("boolean", "int", "long", "date", "string")), *_TIMES)
"""The types whose values are partitions as they are."""
_HOUR_US = 3_600_000_000


def arrow_can_write(target: LoadTarget) -> bool:
    """Whether Arrow computes the partitions of a table, and the table has no order that DuckDB sorts by."""
    return order_sql(target.order, target) is None and all(
        _is_void(target, field) or _is_known(target, field) for field in target.spec.fields
    )


def _is_void(target: LoadTarget, field: PartitionField) -> bool:
    return field.transform == VOID or not target.schema.line_to(field.source_ids[0])


def _is_known(target: LoadTarget, field: PartitionField) -> bool:
    line = target.schema.line_to(field.source_ids[0])
    if len(line) != 1:
        return False
    name, type_ = field.transform.name, line[0].type
    if name == "identity":
        return type_ in _IDENTITY_TYPES
    return name in _TRANSFORMS and (type_ in _TIMES or (type_ == Primitive("date") and name != "hour"))


def by_partition(rows: Any, target: LoadTarget) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The rows of each partition, with its values as a manifest has them.

    :param rows: ``pyarrow.Table`` with the columns of a table that Arrow can write.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = dict[str, Any]()
    for number, field in enumerate(target.spec.fields):
        if not _is_void(target, field):
            (source,) = target.schema.line_to(field.source_ids[0])
            columns[str(number)] = _values(rows[source.name], field.transform.name, source.type)
    names = [str(number) for number in range(len(target.spec.fields))]
    if not columns:
        yield (None,) * len(names), rows
        return
    distinct = pa.table(columns).group_by(list(columns), use_threads=False).aggregate([])
    for found in distinct.to_pylist():
        part = rows
        if distinct.num_rows > 1:
            masks = [
                pc.is_null(values)
                if found[name] is None
                else pc.fill_null(pc.equal(values, found[name]), False)
                for name, values in columns.items()
            ]
            mask = masks[0]
            for other in masks[1:]:
                mask = pc.and_(mask, other)
            part = rows.filter(mask)
        yield tuple(found.get(name) for name in names), part


def _values(column: Any, transform: str, type_: Type) -> Any:
    """Times as numbers since 1970: of hours, days, months or years, or as they are stored."""
    import pyarrow as pa

    if transform != "identity":
        # Without its zone, which is UTC: Arrow would ask for the database of zones.
        return _TRANSFORMS[transform](column.cast(pa.timestamp("us")))
    if type_ in _TIMES:
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if type_ == Primitive("date") else column


def _hours(times: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.divide(pc.floor_temporal(times, unit="hour").cast(pa.int64()), _HOUR_US)


def _days(times: Any) -> Any:
    import pyarrow as pa

    return times.cast(pa.date32(), safe=False).cast(pa.int32())


def _months(times: Any) -> Any:
    import pyarrow.compute as pc

    return pc.add(pc.multiply(_years(times), 12), pc.subtract(pc.month(times), 1))


def _years(times: Any) -> Any:
    import pyarrow.compute as pc

    return pc.subtract(pc.year(times), 1970)


_TRANSFORMS = {"hour": _hours, "day": _days, "month": _months, "year": _years}
