"""Partition specs, transforms and sort orders (specification, "Partitioning" and "Sorting")."""

from __future__ import annotations

import re
from typing import TypeAlias

from icemigrate.frozen import Frozen, cached_property
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.types import Decimal, Fixed, Primitive, Type

FIRST_FIELD_ID = 1000
"""Partition field ids start here."""

Definition: TypeAlias = tuple[tuple[int, ...], str, str]
"""The content of a partition field: sources, transform, name."""

TIME_TRANSFORMS = ("year", "month", "day", "hour")


class Transform(Frozen):
    """A transform by the specification's name; ``width`` is the count of buckets or the truncation."""

    name: str
    width: int | None = None

    def __str__(self) -> str:
        return self.name if self.width is None else f"{self.name}[{self.width}]"

    @classmethod
    def parse(cls, text: str) -> Transform:
        """Read the specification's text (``bucket[16]``); unknown transforms are kept as they are."""
        match = re.fullmatch(r"(bucket|truncate)\[([0-9]+)\]", text)
        return cls(match[1], int(match[2])) if match else cls(text)


IDENTITY = Transform("identity")
VOID = Transform("void")


class PartitionField(Frozen):
    """One field of a spec.

    :param source_ids: ids of the source fields; one, but for multi-argument transforms of v3.
    :param id: partition field id; negative for one that is new in a declaration.
    """

    source_ids: tuple[int, ...]
    transform: Transform
    name: str
    id: int

    @property
    def definition(self) -> Definition:
        """Its content without its id, which the server chooses."""
        return (self.source_ids, str(self.transform), self.name)


class PartitionSpec(Frozen, dict=True):
    """Partition fields in order, with void ones (left by drops in v1)."""

    fields: tuple[PartitionField, ...] = ()
    id: int = 0

    @cached_property
    def live(self) -> tuple[PartitionField, ...]:
        """The fields that partition: without the void ones."""
        return tuple(f for f in self.fields if f.transform != VOID)

    @cached_property
    def definitions(self) -> frozenset[Definition]:
        """The content of the spec, without its ids and its order (remaining fields stay in place, new ones
        are added last).
        """
        return frozenset(f.definition for f in self.live)


UNPARTITIONED = PartitionSpec()


def default_name(source: FieldPath, transform: Transform) -> str:
    """The name that ``ADD PARTITION FIELD`` gives a field without a name.

    Iceberg's ``BaseUpdatePartitionSpec``: identity takes the source's full name, bucket and truncate append
    their width (``CREATE TABLE`` does not).
    """
    name = ".".join(source)
    if transform == IDENTITY:
        return name
    if transform.width is not None:
        suffix = "bucket" if transform.name == "bucket" else "trunc"
        return f"{name}_{suffix}_{transform.width}"
    return f"{name}_{transform.name}"


def default_create_name(source: FieldPath, transform: Transform) -> str:
    """The name ``CREATE TABLE … PARTITIONED BY`` gives a field: no width in it."""
    name = ".".join(source)
    if transform == IDENTITY:
        return name
    if transform.width is not None:
        return f"{name}_{'bucket' if transform.name == 'bucket' else 'trunc'}"
    return f"{name}_{transform.name}"


_TIMESTAMPS = {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
_SOURCES: dict[str, set[str]] = {
    "bucket": {"int", "long", "date", "time", "string", "uuid", "binary"} | _TIMESTAMPS,
    "truncate": {"int", "long", "string", "binary"},
    "year": {"date"} | _TIMESTAMPS,
    "month": {"date"} | _TIMESTAMPS,
    "day": {"date"} | _TIMESTAMPS,
    "hour": _TIMESTAMPS,
}
_NOT_IDENTITY = {"variant", "unknown"}


def accepts_source_type(transform: Transform, source: Type) -> bool:
    """Whether a transform may be applied to a source type (specification, "Partition Transforms")."""
    if transform == VOID:
        return True
    if isinstance(source, Decimal):
        return transform.name in ("identity", "bucket", "truncate")
    if isinstance(source, Fixed):
        return transform.name in ("identity", "bucket")
    if not isinstance(source, Primitive):
        return False
    if transform == IDENTITY:
        return source.name not in _NOT_IDENTITY
    return source.name in _SOURCES.get(transform.name, set())


def reads_as_same(transform: Transform, old: Type, new: Type) -> bool:
    """Whether a promoted source still gives the same partition values.

    Specification, "Schema Evolution": promotion "is not allowed for a field that is referenced by
    ``source-id`` […] if the partition transform would produce a different value after promoting the type",
    which is possible from date to timestamp.  A date and its midnight have the same year, month and day; as
    identity and in buckets, they differ.
    """
    if old == Primitive("date") and new != old:
        return transform.name in ("void", "year", "month", "day")
    return True


def can_promote_source(transform: Transform, old: Type, new: Type) -> bool:
    """Whether Iceberg's library accepts a live transform while its source's type changes.

    The year, month and day of a date are those of its midnight, and the specification allows them to stay.
    But Java 1.12 keeps the transform of the old type, and then refuses the commit ("Invalid source type
    timestamp for transform: month", ``PartitionSpec`` and ``SortOrder.checkCompatibility``).
    """
    is_between = old != new and Primitive("date") in (old, new)
    return not (is_between and transform.name in TIME_TRANSFORMS)


ASC, DESC = "asc", "desc"
NULLS_FIRST, NULLS_LAST = "nulls-first", "nulls-last"


class SortField(Frozen):
    """One term of an order; ``direction`` and ``null_order`` are the specification's words."""

    source_ids: tuple[int, ...]
    transform: Transform = IDENTITY
    direction: str = ASC
    null_order: str = NULLS_FIRST


class SortOrder(Frozen):
    """Terms in order; without terms it is the unsorted order."""

    fields: tuple[SortField, ...] = ()
    id: int = 0


UNSORTED = SortOrder()


def default_null_order(direction: str) -> str:
    """Null order by default: first when ascending, last when descending (as in Spark and Iceberg)."""
    return NULLS_FIRST if direction == ASC else NULLS_LAST


def term_text(transform: Transform, source: FieldPath) -> str:
    """A column, or a transform of one."""
    column = format_path(source)
    if transform == IDENTITY:
        return column
    width = "" if transform.width is None else f"{transform.width}, "
    return f"{transform.name}({width}{column})"


class SortTerm(Frozen):
    """One term of an order, by the path of its source; the other words are the specification's."""

    source: FieldPath
    transform: Transform = IDENTITY
    direction: str = ASC
    null_order: str = NULLS_FIRST

    def __str__(self) -> str:
        """The term as in a migration file, without default values."""
        text = term_text(self.transform, self.source) + (" desc" if self.direction == DESC else "")
        if self.null_order == default_null_order(self.direction):
            return text
        return text + (" nulls first" if self.null_order == NULLS_FIRST else " nulls last")
