"""Partition values as text, as Iceberg's partition paths show them: ``at_day=2026-11-27``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from icemigrate.iceberg.metadata_parts import current_schema, read_specs
from icemigrate.iceberg.partitioning import IDENTITY, PartitionField, PartitionSpec
from icemigrate.iceberg.schema_json import type_from_json
from icemigrate.iceberg.single_values import from_bytes
from icemigrate.iceberg.types import Primitive, Type

TIME_TRANSFORMS = ("year", "month", "day", "hour")
_EPOCH = date(1970, 1, 1)
_EPOCH_YEAR = 1970
_UNPARTITIONED = ""
_LONG = 8


class PartitionTexts:
    """Writes the partition values of one table's files.

    :param metadata: complete metadata.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._specs: dict[int, PartitionSpec] = {spec.id: spec for spec in read_specs(metadata)}
        self._types: dict[int, Type] = {f.id: f.type for _, f in current_schema(metadata).walk()}
        # A column that was dropped is in an older schema only.
        for schema in metadata["schemas"]:
            for column in schema["fields"]:
                if column["id"] not in self._types and isinstance(column["type"], str):
                    self._types[column["id"]] = type_from_json(column["type"])

    def text(self, spec_id: int, partition: Mapping[int, Any]) -> str:
        """The values of a file in the order of its spec; empty for an unpartitioned one."""
        spec = self._specs.get(spec_id)
        if spec is None:
            return _UNPARTITIONED
        return "/".join(f"{f.name}={self.value_text(f, partition.get(f.id))}" for f in spec.live)

    def value_text(self, field: PartitionField, value: Any) -> str:
        """The value of one field of a spec."""
        if value is None:
            return "null"
        name = field.transform.name
        if name in TIME_TRANSFORMS:
            return time_text(name, value)
        if name == "truncate" or field.transform == IDENTITY:
            return source_text(self._types.get(field.source_ids[0]), value)
        return _plain(value)


def time_text(transform: str, value: int) -> str:
    """The value of one of :data:`TIME_TRANSFORMS`."""
    if transform == "year":
        return str(_EPOCH_YEAR + value)
    if transform == "month":
        return f"{_EPOCH_YEAR + value // 12:04}-{value % 12 + 1:02}"
    return _day(value) if transform == "day" else f"{_day(value // 24)}-{value % 24:02}"


def _day(number: int) -> str:
    try:
        return (_EPOCH + timedelta(days=number)).isoformat()
    except OverflowError:
        return f"day {number}"


def source_text(type_: Type | None, value: Any) -> str:
    """A value of the column's own type."""
    if type_ is None or isinstance(value, (bool, float, Decimal)):
        return _plain(value)
    if isinstance(value, str) or type_ in (Primitive("int"), Primitive("long")):
        return _plain(value)
    content = value if isinstance(value, bytes) else int(value).to_bytes(_LONG, "little", signed=True)
    found = from_bytes(type_, content)
    return _plain(value) if found is None else _plain(found)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.hex() if isinstance(value, bytes) else str(value)
