"""Partition values in manifests: their types, their Avro form, and the summary in a manifest list.

A value has the form that a Parquet column stores (numbers count days or microseconds since 1970), a decimal
is a :class:`decimal.Decimal`, and a UUID is its 16 bytes.

* `Partition Transforms <https://iceberg.apache.org/spec/#partition-transforms>`_; a day is a ``date``, as
  Iceberg's Java library writes it
* `Field Summaries <https://iceberg.apache.org/spec/#manifest-lists>`_
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from typing import Any

from icemigrate.iceberg.partitioning import PartitionSpec, Transform
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Decimal, Field, Primitive, Struct, Type
from icemigrate.metadata_engine.manifest_schemas import avro_name, decimal_bytes
from icemigrate.metadata_engine.parquet_metrics import lower_bound

_INT, _DATE, _UNKNOWN = Primitive("int"), Primitive("date"), Primitive("unknown")
_RESULTS = {"bucket": _INT, "year": _INT, "month": _INT, "hour": _INT, "day": _DATE}
_WHOLE_VALUE = 2**31 - 1


def transform_result(transform: Transform, source: Type) -> Type:
    """The type of a transform's values; that of the source for identity, truncate and void."""
    return _RESULTS.get(transform.name, source)


def partition_type(spec: PartitionSpec, schema: Schema) -> Struct:
    """A field for each field of a spec; a field whose source is dropped has the type ``unknown``."""
    lines = ((f, schema.line_to(f.source_ids[0])) for f in spec.fields)
    return Struct(
        tuple(
            Field(f.id, f.name, transform_result(f.transform, line[-1].type) if line else _UNKNOWN)
            for f, line in lines
        )
    )


def partition_record(fields: Sequence[Field], values: Sequence[Any]) -> dict[str, Any]:
    """A partition as the record of a manifest.

    :param fields: of :func:`partition_type`.
    :param values: one for each field.
    """
    return {avro_name(f.name): _avro_value(f.type, v) for f, v in zip(fields, values, strict=True)}


def _avro_value(type_: Type, value: Any) -> Any:
    if isinstance(type_, Decimal) and isinstance(value, decimal.Decimal):
        return _unscaled(type_, value).to_bytes(decimal_bytes(type_.precision), "big", signed=True)
    return value


def _unscaled(type_: Decimal, value: decimal.Decimal) -> int:
    with decimal.localcontext() as context:
        context.prec = 2 * type_.precision + type_.scale
        return int(value.scaleb(type_.scale))


def field_summaries(fields: Sequence[Field], partitions: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """What a manifest list says about the values of each partition field.

    :param partitions: of the files of one manifest.
    """
    return [_summary(f.type, [values[i] for values in partitions]) for i, f in enumerate(fields)]


def _summary(type_: Type, values: Sequence[Any]) -> dict[str, Any]:
    present = [v for v in values if v is not None]
    numbers = [v for v in present if not (isinstance(v, float) and math.isnan(v))]
    return {
        "contains_null": len(present) < len(values),
        "contains_nan": len(numbers) < len(present),
        "lower_bound": _bound(type_, min(numbers)) if numbers else None,
        "upper_bound": _bound(type_, max(numbers)) if numbers else None,
    }


def _bound(type_: Type, value: Any) -> bytes:
    if isinstance(type_, Decimal):
        value = _unscaled(type_, value)
    return lower_bound(type_, value.encode() if isinstance(value, str) else value, _WHOLE_VALUE)
