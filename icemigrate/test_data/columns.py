"""The columns of a schema as Arrow arrays and fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icemigrate.iceberg.arrow_types import arrow_field, arrow_schema, arrow_type, is_stored
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Decimal, Field, Fixed, List, Map, Primitive, Struct, Type, is_nested
from icemigrate.test_data import byte_strings, numbers, text, times
from icemigrate.test_data.counter import SLOTS, Draws, column_key
from icemigrate.test_data.integer_arrays import IntegerArray
from icemigrate.test_data.sources import Source, source_of

_MAX_LIST_LENGTH = 4
_MAX_MAP_ENTRIES = 3

_TIMESTAMPS = {
    "timestamp": (False, False),
    "timestamptz": (False, True),
    "timestamp_ns": (True, False),
    "timestamptz_ns": (True, True),
}
"""By name, whether its unit is a nanosecond, and whether it has a zone."""

_VALUES: Mapping[str, Callable[[Source, Draws], Any]] = {
    "boolean": numbers.booleans,
    "int": numbers.ints,
    "long": numbers.longs,
    "float": numbers.floats,
    "double": numbers.doubles,
    "date": times.dates,
    "time": times.times,
    "string": text.strings,
    "uuid": byte_strings.uuids,
    "binary": byte_strings.binaries,
}


def record_batch(schema: Schema, seed: int, first_row: int, rows: int) -> Any:
    """The rows from ``first_row`` on, as an Arrow record batch.

    :param schema: its types are checked by :func:`~icemigrate.test_data.schema_checks.unsupported_columns`.
    """
    import pyarrow as pa

    made = _Columns(seed, schema.identifier_ids)
    indices = IntegerArray.counting(first_row, rows)
    arrays = made.arrays(schema.fields, "", indices)
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema.fields))


class _Columns:
    """The generator of one schema's arrays."""

    def __init__(self, seed: int, identifiers: frozenset[int]) -> None:
        self._seed = seed
        self._identifiers = identifiers

    def arrays(self, fields: Sequence[Field], parent: str, indices: IntegerArray) -> list[Any]:
        """The arrays of a struct's fields, or of a table's columns."""
        return [self._array(field, parent, indices) for field in fields if is_stored(field)]

    def _array(self, field: Field, parent: str, indices: IntegerArray, *, is_map_key: bool = False) -> Any:
        path = f"{parent}.{field.name}" if parent else field.name
        draws = Draws(column_key(self._seed, path), indices)
        valid = draws.validity(field.required)
        if is_nested(field.type):
            return self._nested(field.type, path, draws, valid)
        is_identifier = field.id in self._identifiers
        source = source_of(field, is_identifier=is_identifier, is_map_key=is_map_key)
        return _with_nulls(_values(field.type, source, draws), valid)

    def _nested(self, type_: Type, path: str, draws: Draws, valid: Any) -> Any:
        import pyarrow as pa

        nulls = None if valid is None else valid.buffers()[1]
        if isinstance(type_, Struct):
            children = self.arrays(type_.fields, path, draws.indices)
            return pa.Array.from_buffers(arrow_type(type_), len(draws), [nulls], children=children)
        if isinstance(type_, List):
            offsets, inner = _slots(draws, valid, _MAX_LIST_LENGTH)
            values = self._array(type_.element, path, inner)
        else:
            assert isinstance(type_, Map)
            offsets, inner = _slots(draws, valid, _most_entries(type_.key.type))
            keys = self._array(type_.key, path, inner, is_map_key=True)
            entries = [keys, self._array(type_.value, path, inner)]
            fields = [arrow_field(type_.key), arrow_field(type_.value)]
            values = pa.StructArray.from_arrays(entries, fields=fields)
        return pa.Array.from_buffers(arrow_type(type_), len(draws), [nulls, offsets], children=[values])


def _values(type_: Type, source: Source, draws: Draws) -> Any:
    if isinstance(type_, Decimal):
        return numbers.decimals(source, draws, type_)
    if isinstance(type_, Fixed):
        return byte_strings.fixed(source, draws, type_.length)
    assert isinstance(type_, Primitive), f"there is no test data for {type_}"
    if type_.name in _TIMESTAMPS:
        is_nanosecond, has_zone = _TIMESTAMPS[type_.name]
        return times.timestamps(source, draws, is_nanosecond=is_nanosecond, has_zone=has_zone)
    return _VALUES[type_.name](source, draws)


def _with_nulls(array: Any, valid: Any) -> Any:
    """The array with nulls where it is not valid; its values are not copied."""
    import pyarrow as pa

    if valid is None:
        return array
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, _with_nulls(array.storage, valid))
    buffers = [valid.buffers()[1], *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset)


def _slots(draws: Draws, valid: Any, most: int) -> tuple[Any, IntegerArray]:
    """The buffer of offsets of lists or maps, and the indices of their elements.

    :param most: elements of a list.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = draws.bits(1).below(most + 1).cast(pa.int32())
    if valid is not None:
        lengths = pc.if_else(valid, lengths, pa.scalar(0, pa.int32()))
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    count = ends[-1].as_py() if len(ends) else 0
    places = IntegerArray.counting(0, count)
    lists = pc.list_parent_indices(pa.ListArray.from_arrays(offsets, places.array))
    positions = places - IntegerArray(offsets.take(lists).cast(pa.uint64()))
    return offsets.buffers()[1], draws.indices.take(lists) * SLOTS + positions


def _most_entries(key: Type) -> int:
    """How many entries a map can have with keys that differ."""
    if is_nested(key):
        return 1
    return 2 if key == Primitive("boolean") else _MAX_MAP_ENTRIES
