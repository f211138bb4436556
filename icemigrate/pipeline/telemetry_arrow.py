"""Columns of telemetry as Arrow, with the columns and types of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from icemigrate.iceberg.arrow_types import arrow_schema, arrow_type
from icemigrate.iceberg.type_text import format_type, parse_type
from icemigrate.iceberg.types import Field
from icemigrate.otlp.attribute_columns import COLUMN_TYPES, AttributeSource, column_values
from icemigrate.otlp.telemetry_columns import RepeatedValues, RequestColumns

_CHUNK_ROWS = 10_000
_CHUNK_BYTES = 8 * 1024 * 1024
"""Rows, and bytes of payloads, that are Python's values before they are Arrow's."""


class UnsuitableTable(Exception):
    """A table whose columns cannot have the rows; the text says which column, and why."""


class ArrowRows:
    """Rows of one table, collected from requests.

    :param types: of the columns that requests have, in Iceberg's notation.
    :param columns: the stored ones of the table; those that requests do not have are null.
    :param sources: the attributes that fill some of the columns, by column.
    :ivar bytes: of the rows that are Arrow's, since the last :meth:`take`.
    """

    def __init__(
        self,
        types: Mapping[str, str],
        columns: Sequence[Field],
        sources: Mapping[str, AttributeSource] | None = None,
    ) -> None:
        self._schema = arrow_schema(columns)
        self._fields = [(one, types.get(one.name)) for one in columns]
        self._sources = sources or {}
        maps = (source.map for source in self._sources.values())
        self._names = tuple(
            dict.fromkeys((*(one.name for one, type_ in self._fields if type_ is not None), *maps))
        )
        self._chunks = list[Any]()
        self.bytes = 0
        self._start()

    def _start(self) -> None:
        self._pending = dict[str, list[Any] | RepeatedValues]()
        self._pending_rows = self._pending_bytes = 0

    def add(self, found: RequestColumns, size: int) -> None:
        """Add the rows of a request.

        :param size: of its payload, in bytes.
        :raises UnsuitableTable: the table cannot have them.
        """
        for name in self._names:
            _extend(self._pending, name, found.columns[name])
        self._pending_rows += found.rows
        self._pending_bytes += size
        if self._pending_rows >= _CHUNK_ROWS or self._pending_bytes >= _CHUNK_BYTES:
            self._convert()

    def take(self) -> Any:
        """The rows since the last call, as ``pyarrow.Table``.

        :raises UnsuitableTable: the table cannot have them.
        """
        import pyarrow as pa

        self._convert()
        chunks, self._chunks, self.bytes = self._chunks, [], 0
        return pa.Table.from_batches(chunks, self._schema)

    def _convert(self) -> None:
        import pyarrow as pa

        rows, pending = self._pending_rows, self._pending
        self._start()
        if not rows:
            return
        arrays = []
        for (field, type_), stored in zip(self._fields, self._schema, strict=True):
            if (source := self._sources.get(field.name)) is not None:
                array, type_ = _attribute_array(pending[source.map], source, field), None
            else:
                array = None if type_ is None else _array(pending[field.name], _arrow_type(type_))
            if field.required and (array is None or array.null_count):
                raise UnsuitableTable(f"column `{field.name}` is required, and rows have no value of it")
            arrays.append(
                pa.nulls(rows, stored.type) if array is None else _fitted(array, stored, field, type_)
            )
        self._chunks.append(pa.record_batch(arrays, schema=self._schema))
        self.bytes += self._chunks[-1].nbytes


@cache
def _arrow_type(type_: str) -> Any:
    return arrow_type(parse_type(type_))


def _extend(
    pending: dict[str, list[Any] | RepeatedValues], name: str, found: list[Any] | RepeatedValues
) -> None:
    if isinstance(found, RepeatedValues):
        known = pending.setdefault(name, RepeatedValues([], []))
        assert isinstance(known, RepeatedValues), "a column has one form"
        known.values.extend(found.values)
        known.counts.extend(found.counts)
    else:
        plain = pending.setdefault(name, [])
        assert isinstance(plain, list), "a column has one form"
        plain.extend(found)


def _array(values: list[Any] | RepeatedValues, type_: Any) -> Any:
    """Values as ``pyarrow.Array`` of the type that requests have."""
    import pyarrow as pa

    if isinstance(values, RepeatedValues):
        indices = [index for index, count in enumerate(values.counts) for _ in range(count)]
        return _array(values.values, type_).take(pa.array(indices, pa.int32()))
    if pa.types.is_map(type_):
        return _maps(values, type_)
    if pa.types.is_nested(type_):
        return pa.array([_with_pairs(one) for one in values], type_)
    return pa.array(values, type_)


def _maps(values: list[dict[str, str]], type_: Any) -> Any:
    """Maps, of which none is null: much faster than from a list of pairs for each one."""
    import pyarrow as pa

    offsets, keys, items = [0], list[str](), list[str]()
    for one in values:
        keys.extend(one)
        items.extend(one.values())
        offsets.append(len(keys))
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(keys, type_.key_type), pa.array(items, type_.item_type), type_
    )


def _attribute_array(values: list[Any] | RepeatedValues, source: AttributeSource, field: Field) -> Any:
    """The values of a column that an attribute fills.

    :param values: maps of attributes.
    :raises UnsuitableTable: attributes fill no columns of its type.
    """
    text = format_type(field.type)
    if text not in COLUMN_TYPES:
        types = ", ".join(f"`{one}`" for one in COLUMN_TYPES)
        raise UnsuitableTable(
            f"column `{field.name}` has type `{text}`, and attributes fill columns of the types {types}"
        )
    maps = values.values if isinstance(values, RepeatedValues) else values
    found = column_values([one.get(source.name) for one in maps], text)
    plain = RepeatedValues(found, values.counts) if isinstance(values, RepeatedValues) else found
    return _array(plain, _arrow_type(text))


def _with_pairs(value: Any) -> Any:
    """A value in the form that Arrow converts: a map of a struct is a list of pairs."""
    if isinstance(value, list):
        return [_with_pairs(one) for one in value]
    if isinstance(value, dict):
        return {name: list(one.items()) if isinstance(one, dict) else one for name, one in value.items()}
    return value


def _fitted(array: Any, stored: Any, field: Field, type_: str | None) -> Any:
    """An array with the type of a table's column, which may be a wider one.

    :param stored: the column as ``pyarrow.Field``.
    :param type_: of the array, in Iceberg's notation.
    :raises UnsuitableTable: the column cannot have the values; the text has none of them.
    """
    import pyarrow as pa

    if array.type.equals(stored.type):
        return array
    try:
        return pa.array(array.to_pylist(), stored.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        found = format_type(field.type)
        raise UnsuitableTable(
            f"column `{field.name}` has type `{found}`, which lacks values of type `{type_}`"
        ) from None
