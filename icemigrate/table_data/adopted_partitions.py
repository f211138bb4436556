"""The partition of a foreign Parquet file: from its values, and from the names of its folders.

A table's partitions are hidden: a file must have the rows of one partition alone, which the values prove.  Of
an identity partition whose column the file lacks, the folder's name has the value, and readers take it from
the manifest (specification, "Column Projection").
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from icemigrate.diagnostics import did_you_mean
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.partitioning import IDENTITY, PartitionField, Transform, accepts_source_type
from icemigrate.iceberg.types import Decimal, Field, Primitive, Type
from icemigrate.metadata_engine.parquet_metrics import MetricColumn
from icemigrate.metadata_engine.parquet_values import stored_value
from icemigrate.table_data.adopted_columns import ColumnMismatch, FileColumns
from icemigrate.table_data.adopted_files import FolderKey
from icemigrate.table_data.adopted_values import ColumnRange, scaled_decimal
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.partition_columns import NO_PARTITION, smallest_number
from icemigrate.table_data.partition_texts import TIME_TRANSFORMS, PartitionTexts, source_text, time_text

_FIRST_DAY = date(1970, 1, 1)
_DAY_US, _HOUR_US = 86_400_000_000, 3_600_000_000
_FLOATS = (Primitive("float"), Primitive("double"))
_HINT = "write the file again, with the rows of one partition"
_HINT_OUTLIERS = "write the file again without these rows"
_SMALLEST_INT, _LARGEST_INT = -(2**31), 2**31 - 1
_DAYS_OF_CYCLE, _YEARS_OF_CYCLE = 146_097, 400
"""After which the calendar repeats: the dates of Python end with the year 9999."""


class FileValues(Frozen):
    """What is known of a file's values.

    :param footer: the range of a column by its statistics, by its number in the file.
    :param read: the range by its values.
    :param buckets: the distinct buckets of a column's values, which a number of buckets asks for.
    """

    footer: Callable[[int, MetricColumn], ColumnRange | None]
    read: Callable[[int, MetricColumn], ColumnRange]
    buckets: Callable[[int, MetricColumn, int], set[int | None]]


class _Mismatched(Exception):
    """A file whose partition is not proven."""

    def __init__(self, message: str, hint: str | None = _HINT) -> None:
        super().__init__(message)
        self.mismatch = ColumnMismatch(message, hint)


def partition_of(
    target: LoadTarget, columns: FileColumns, keys: Sequence[FolderKey], values: FileValues
) -> tuple[tuple[Any, ...], tuple[ColumnMismatch, ...]]:
    """The partition values of a file, and why it cannot be one of the table.

    :param columns: of the file.
    :param keys: of its folders.
    """
    finder = _PartitionFinder(target, columns, keys, values)
    found, problems = list[Any](), list[ColumnMismatch]()
    for field in target.spec.fields:
        try:
            found.append(None if field.transform.name == "void" else finder.value(field))
        except _Mismatched as error:
            found.append(None)
            problems.append(error.mismatch)
    if not problems:
        problems += finder.wrong_keys(found)
    return tuple(found), tuple(problems)


class _PartitionFinder:
    """Finds the partition of one file."""

    def __init__(
        self, target: LoadTarget, columns: FileColumns, keys: Sequence[FolderKey], values: FileValues
    ) -> None:
        self._target, self._keys, self._values = target, keys, values
        self._leaves = {column.field.id: (number, column) for number, column in columns.leaves}
        self._missing = {field.id: field for field in columns.missing}

    def value(self, field: PartitionField) -> Any:
        """The value of a partition field.

        :raises _Mismatched: the file has rows of several partitions, or its partition is not known.
        """
        source, transform = field.source_ids[0], field.transform
        line = self._target.schema.line_to(source)
        shown = format_path(tuple(one.name for one in line))
        if source not in self._leaves:
            return self._folder_value(field, line[-1], shown)
        number, column = self._leaves[source]
        type_ = column.field.type
        if transform.name == "bucket":
            assert transform.width is not None, "buckets have a number"
            return self._only(self._values.buckets(number, column, transform.width), field, shown)
        found = None if type_ in _FLOATS else self._values.footer(number, column)
        value = None if found is None else _common(transform, type_, found)
        if value is None:
            found = self._values.read(number, column)
            value = _common(transform, type_, found)
        if value is None:
            assert found is not None, "the column was read"
            low, high = (_shown(type_, one) for one in (found.low, found.high))
            extent = "nulls and values" if low == high else f"values from {low} to {high}"
            raise _Mismatched(f"column `{shown}` has {extent}, and the table has partitions by {transform}")
        if _is_out_of_range(transform, type_, value.value):
            assert found is not None, "the value is of a range"
            reason = f"{NO_PARTITION.format(field.name, transform)} {_shown(type_, found.low)}"
            raise _Mismatched(f"column `{shown}` has values without a partition: {reason}", _HINT_OUTLIERS)
        return value.value

    def _only(self, found: set[int | None], field: PartitionField, shown: str) -> int | None:
        if len(found) > 1:
            raise _Mismatched(f"column `{shown}` has values of {len(found)} partitions by {field.transform}")
        return next(iter(found), None)

    def _folder_value(self, field: PartitionField, source: Field, shown: str) -> Any:
        """The value of a column that the file lacks."""
        key = next((key for key in self._keys if key.name in (source.name, field.name)), None)
        if key is not None and field.transform == IDENTITY:
            return _typed(source, key)
        if source.required or source.initial_default is not None or key is not None:
            raise _Mismatched(
                f"it lacks column `{shown}`, by which the table has partitions ({field.transform})",
                "write the file again, with the column",
            )
        return None

    def wrong_keys(self, partition: Sequence[Any]) -> Iterator[ColumnMismatch]:
        """The folders whose names are not those of the file's values."""
        fields = self._target.spec.fields
        texts = PartitionTexts(self._target.metadata)
        for key in self._keys:
            number = self._field_of(key)
            if number is not None:
                value = partition[number]
                text = texts.value_text(fields[number], value)
                is_same = value is None if key.value is None else key.value in (text, str(value))
                if not is_same:
                    column = self._target.schema.line_to(fields[number].source_ids[0])[0]
                    is_same = fields[number].transform == IDENTITY and _is_typed(column, key, value)
                if not is_same:
                    yield ColumnMismatch(
                        f"its folder has {_shown_key(key)}, and its values are those of {text}",
                        "move the file to the folder of its values",
                    )
            else:
                yield from self._unused_key(key)

    def _field_of(self, key: FolderKey) -> int | None:
        """The number of the partition field that a folder names: itself, its column or its transform."""
        fields = [(i, f) for i, f in enumerate(self._target.spec.fields) if f.transform.name != "void"]
        sources = {i: self._target.schema.line_to(f.source_ids[0])[-1].name for i, f in fields}
        for names in (
            {i: f.name for i, f in fields},
            {i: sources[i] for i, f in fields if f.transform == IDENTITY},
            {i: f.transform.name for i, f in fields},
        ):
            found = [i for i, name in names.items() if name == key.name]
            if len(found) == 1:
                return found[0]
        return None

    def _unused_key(self, key: FolderKey) -> Iterator[ColumnMismatch]:
        """The problem of a folder that is no partition of the table."""
        column = next((c for c in self._target.schema.fields if c.name == key.name), None)
        if column is None and (not key.is_below or self._is_time_of_rows(key)):
            return
        if column is None:
            names = [c.name for c in self._target.schema.fields]
            yield ColumnMismatch(
                f"its folder has {_shown_key(key)}, and the table has no such column",
                did_you_mean(key.name, names) or "give the path of a folder below it, or add the column",
            )
        elif column.id not in self._leaves:
            yield ColumnMismatch(
                f"only its folder has values of column `{key.name}`, and the table has no partitions by it",
                f"create the table with `partition_by: [{key.name}]`, or write the file with the column",
            )
        else:
            leaf = self._leaves[column.id]
            found = self._values.read(*leaf)
            if not (found.low == found.high and not (found.nulls and not found.is_null)) or not _is_typed(
                column, key, found.low
            ):
                yield ColumnMismatch(
                    f"its folder has {_shown_key(key)}, and column `{key.name}` other values",
                    "move the file to the folder of its values",
                )

    def _is_time_of_rows(self, key: FolderKey) -> bool:
        """Whether a folder such as ``day=2026-11-01`` has a time that a column of the file has too."""
        if key.name not in TIME_TRANSFORMS:
            return False
        transform = Transform(key.name)
        for number, column in self._leaves.values():
            type_ = column.field.type
            if column.is_repeated or not accepts_source_type(transform, type_):
                continue
            found = self._values.footer(number, column) or self._values.read(number, column)
            common = _common(transform, type_, found)
            if (
                common is not None
                and common.value is not None
                and (key.value == time_text(key.name, common.value))
            ):
                return True
        return False


class _Common(Frozen):
    """The value of a transform that all rows have."""

    value: Any


def _common(transform: Transform, type_: Type, found: ColumnRange) -> _Common | None:
    """The value of all rows; ``None`` where they have several, or it is not known."""
    if found.is_null:
        return _Common(None)
    if found.nulls:
        return None
    low, high = (_transformed(transform, type_, one) for one in (found.low, found.high))
    return _Common(low) if low == high else None


def _transformed(transform: Transform, type_: Type, value: Any) -> Any:
    """A transform that keeps the order (specification, "Partition Transforms")."""
    if transform == IDENTITY:
        return value
    if transform.name == "truncate":
        assert transform.width is not None, "a truncation has a width"
        if isinstance(type_, Decimal):
            unscaled = int(scaled_decimal(type_, value, type_.scale))
            return scaled_decimal(type_, unscaled - unscaled % transform.width, -type_.scale)
        return (
            value[: transform.width] if isinstance(value, (str, bytes)) else value - value % transform.width
        )
    assert isinstance(type_, Primitive), "times and dates"
    unit = 1000 if type_.name.endswith("_ns") else 1
    if transform.name == "hour":
        return value // (_HOUR_US * unit)
    days = value if type_.name == "date" else value // (_DAY_US * unit)
    if transform.name == "day":
        return days
    cycles, rest = divmod(days, _DAYS_OF_CYCLE)
    day = _FIRST_DAY + timedelta(days=rest)
    years = day.year - _FIRST_DAY.year + cycles * _YEARS_OF_CYCLE
    return years if transform.name == "year" else years * 12 + day.month - 1


def _is_out_of_range(transform: Transform, type_: Type, value: Any) -> bool:
    """Whether the type of a partition field lacks a value: the start of a number, or an hour."""
    if value is None or transform.name not in ("truncate", "hour"):
        return False
    if transform.name == "hour":
        return not _SMALLEST_INT <= value <= _LARGEST_INT
    smallest = smallest_number(type_)
    number = scaled_decimal(type_, value, type_.scale) if isinstance(type_, Decimal) else value
    return smallest is not None and bool(number < smallest)


def _typed(column: Field, key: FolderKey) -> Any:
    """The value in a folder's name.

    :raises _Mismatched: the column cannot have it.
    """
    if key.value is None:
        return None
    try:
        return _read(column, key.value)
    except (ValueError, ArithmeticError) as error:
        raise _Mismatched(
            f"its folder has `{key.name}={key.value}`, which is no value of column `{column.name}`",
            "rename the folder",
        ) from error


def _is_typed(column: Field, key: FolderKey, value: Any) -> bool:
    try:
        return bool(_typed(column, key) == value)
    except _Mismatched:
        return False


def _read(column: Field, text: str) -> Any:
    type_ = column.type
    value: Any = text
    if isinstance(type_, Decimal):
        value = decimal.Decimal(text)
    elif isinstance(type_, Primitive):
        if type_.name in ("int", "long"):
            value = int(text)
        elif type_.name in ("float", "double"):
            value = float(text)
        elif type_.name == "boolean":
            value = {"true": True, "false": False}.get(text.lower())
        elif type_.name.startswith("timestamptz") and "+" not in text and not text.endswith("Z"):
            value = f"{text}Z"  # as Spark writes it in a session of UTC
    found = stored_value(column, value, column.name)
    if found is None:
        raise ValueError(text)
    return found


def _shown(type_: Type, value: Any) -> str:
    return source_text(type_, value)


def _shown_key(key: FolderKey) -> str:
    return f"`{key.name}={'null' if key.value is None else key.value}`"
