"""The partition values of rows, as SQL of DuckDB.

Specification, `Partition Transforms <https://iceberg.apache.org/spec/#partition-transforms>`_.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from icemigrate.errors import EngineError, MissingExtra, extra_hint
from icemigrate.frozen import Frozen
from icemigrate.iceberg.partitioning import ASC, NULLS_FIRST, VOID, PartitionField, SortOrder, Transform
from icemigrate.iceberg.types import Decimal, Fixed, Primitive, Type
from icemigrate.table_data.duckdb_session import quoted_identifier, text_literal
from icemigrate.table_data.duckdb_types import duckdb_type
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget

_SMALLEST: dict[Type, int] = {Primitive("int"): -(2**31), Primitive("long"): -(2**63)}
"""The smallest number of each type of whole numbers."""
NO_PARTITION = "the partition field `{}` ({}) has no value for"
"""Precedes a number in messages."""
_TIMES = ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")


class PartitionColumn(Frozen):
    """A partition value in SQL.

    :param type: of the source.
    """

    sql: str
    transform: Transform
    type: Type


def partition_columns(db: LoadDatabase, target: LoadTarget, table: str) -> tuple[PartitionColumn, ...]:
    """The values of each field of a table's default spec.

    :param table: of DuckDB, which has the rows.

    :raises EngineError: a transform or its source is not supported.
    :raises MissingExtra: buckets need a library that is not installed.
    """
    found = []
    for number, field in enumerate(target.spec.fields):
        line = target.schema.line_to(field.source_ids[0])
        if field.transform == VOID or not line:
            found.append(PartitionColumn("NULL", VOID, Primitive("string")))
            continue
        source = ".".join(quoted_identifier(f.name) for f in line)
        type_ = line[-1].type
        sql = (
            _bucket(db, table, number, field.transform, type_, source)
            if field.transform.name == "bucket"
            else _checked_transform(field, type_, source)
        )
        if sql is None:
            raise EngineError(
                f"icemigrate does not write the partition field `{field.name}` of table `{target.name}` "
                f"({field.transform})",
                "write its rows with Spark",
            )
        found.append(PartitionColumn(sql, field.transform, type_))
    return tuple(found)


def transform_sql(transform: Transform, type_: Type, source: str) -> str | None:
    """A transform of a value in SQL; ``None`` where DuckDB does not have it."""
    if transform.name == "identity":
        return source
    if transform.name == "truncate":
        assert transform.width is not None, "a truncation has a width"
        return _truncated(type_, source, transform.width)
    if transform.name not in ("year", "month", "day", "hour"):
        return None
    # Casts between dates and times, and those to a zone, fail for values that a table may have.
    zoned = type_ == Primitive("timestamptz")
    if type_ == Primitive("date"):
        start, local = "DATE '1970-01-01'", source
    else:
        start = "TIMESTAMP '1970-01-01'"
        local = f"make_timestamp(epoch_us({source}))" if zoned else f"CAST({source} AS TIMESTAMP)"
        if transform.name == "day":
            start, local = "DATE '1970-01-01'", f"CAST({local} AS DATE)"
    return f"CAST(date_diff('{transform.name}', {start}, {local}) AS INTEGER)"


def _truncated(type_: Type, source: str, width: int) -> str | None:
    if type_ in _SMALLEST or (isinstance(type_, Decimal) and type_.scale == 0):
        # The start of a number may be smaller than each value of its type.
        number = f"CAST({source} AS HUGEINT)"
        return f"{number} - ((({number} % {width}) + {width}) % {width})"
    if type_ == Primitive("string"):
        return f"left({source}, {width})"
    if type_ == Primitive("binary"):
        return f"({source})[1:{width}]"
    return None


def smallest_number(type_: Type) -> int | None:
    """The smallest number of a type, unscaled; ``None`` for other types than whole numbers and decimals."""
    return 1 - 10**type_.precision if isinstance(type_, Decimal) else _SMALLEST.get(type_)


def lacks_partition(transform: Transform, type_: Type, source: str) -> str | None:
    """Whether a partition field has no value for a number: a condition in SQL; ``None`` where it always has.

    A truncated number is the first one of its part, which the type of the smallest numbers lacks.
    """
    if transform.name != "truncate" or not isinstance(type_, (Primitive, Decimal)):
        return None
    smallest = smallest_number(type_)
    sql = transform_sql(transform, type_, source)
    return None if smallest is None or sql is None else f"{sql} < {smallest}::HUGEINT"


def _checked_transform(field: PartitionField, type_: Type, source: str) -> str | None:
    """The value of a partition field in SQL; its evaluation fails where there is none."""
    sql, lacks = (
        transform_sql(field.transform, type_, source),
        lacks_partition(field.transform, type_, source),
    )
    if sql is None or lacks is None:
        return sql
    text = text_literal(f"{NO_PARTITION.format(field.name, field.transform)} ")
    return (
        f"CASE WHEN {lacks} THEN error({text} || CAST({source} AS VARCHAR)) "
        f"ELSE CAST({sql} AS {duckdb_type(type_)}) END"
    )


def _bucket(
    db: LoadDatabase, table: str, number: int, transform: Transform, type_: Type, source: str
) -> str | None:
    """A bucket, whose hash DuckDB does not have: each distinct value is hashed once."""
    if isinstance(type_, Fixed) or type_ == Primitive("uuid"):
        return None
    try:
        from pyiceberg_core import transform as library
    except ImportError as error:
        raise MissingExtra("pyiceberg-core is not installed", extra_hint("table")) from error
    import pyarrow as pa

    zoned = type_ == Primitive("timestamptz")
    is_fine = type_ in (Primitive("timestamp_ns"), Primitive("timestamptz_ns"))
    local = f"({source} AT TIME ZONE 'UTC')" if zoned else source
    # Nanoseconds are hashed as microseconds (specification, "Appendix B").
    value = f"CAST({local} AS TIMESTAMP)" if zoned or is_fine else local
    found = db.connection.execute(
        f"SELECT DISTINCT {value} AS value FROM {table} WHERE {source} IS NOT NULL"
    ).to_arrow_table()
    values = found.column(0).combine_chunks()
    buckets = library.bucket(values, transform.width) if len(values) else pa.array([], pa.int32())
    name = f"buckets{number}_{table}"
    db.connection.register(name, pa.table({"value": values, "bucket": buckets}))
    return f"(SELECT bucket FROM {name} WHERE {name}.value = {value})"


def stored_partition(columns: Sequence[PartitionColumn], values: Sequence[Any]) -> tuple[Any, ...]:
    """The values that :func:`fetched` describes, as a manifest has them."""
    return tuple(_stored(c, v) for c, v in zip(columns, values, strict=True))


def fetched(column: PartitionColumn, name: str) -> str:
    """A partition value in a form that Python can fetch: times are numbers, and a UUID is a text."""
    type_ = column.type
    if column.transform.name not in ("identity", "truncate") or not isinstance(type_, Primitive):
        return name
    if type_.name == "date":
        return f"date_diff('day', DATE '1970-01-01', {name})"
    if type_.name == "time":
        return f"epoch_us({name})"
    if type_.name in _TIMES:
        return f"epoch_ns({name})" if type_.name.endswith("_ns") else f"epoch_us({name})"
    return f"CAST({name} AS VARCHAR)" if type_.name == "uuid" else name


def _stored(column: PartitionColumn, value: Any) -> Any:
    if value is None or column.transform.name not in ("identity", "truncate"):
        return value
    if column.type == Primitive("uuid"):
        return UUID(value).bytes
    if isinstance(column.type, Decimal):
        return decimal.Decimal(value)
    return value


def order_sql(order: SortOrder, target: LoadTarget) -> str | None:
    """The terms of ``ORDER BY``; ``None`` where there are none, or DuckDB cannot sort by one of them."""
    terms = []
    for term in order.fields:
        line = target.schema.line_to(term.source_ids[0])
        if not line:
            return None
        source = ".".join(quoted_identifier(f.name) for f in line)
        sql = transform_sql(term.transform, line[-1].type, source)
        if sql is None or term.transform.name == "bucket":
            return None
        direction = "ASC" if term.direction == ASC else "DESC"
        nulls = "FIRST" if term.null_order == NULLS_FIRST else "LAST"
        terms.append(f"{sql} {direction} NULLS {nulls}")
    return ", ".join(terms) or None
