"""Batches of rows with their numbers: texts for plain columns, and values for structs, lists and maps.

A nested value is JSON, in the form of the specification's `Appendix D
<https://iceberg.apache.org/spec/#json-single-value-serialization>`_; a map is an object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isinf
from typing import Any

from icemigrate.iceberg.arrow_types import arrow_schema
from icemigrate.iceberg.json_text import unique_keys
from icemigrate.iceberg.types import Field, List, Map, Primitive, Struct, Type, is_nested
from icemigrate.metadata_engine.parquet_values import UnfitValue, stored_value
from icemigrate.table_data.row_relations import PROBLEM, ROW, SOURCE


def numbered_schema(columns: Sequence[Field]) -> Any:
    """The ``pyarrow.Schema`` of batches with these columns."""
    import pyarrow as pa

    typed = arrow_schema(columns)
    fields = [
        pa.field(column.name, typed.field(i).type if is_nested(column.type) else pa.string())
        for i, column in enumerate(columns)
    ]
    return pa.schema([(ROW, pa.int64()), (PROBLEM, pa.string()), (SOURCE, pa.string()), *fields])


def numbered_batch(
    schema: Any,
    columns: Sequence[Field],
    numbers: Sequence[int],
    texts: Sequence[Any],
    problems: Sequence[Mapping[str, str]] | None = None,
    sources: Sequence[str] | None = None,
) -> Any:
    """A batch of rows.

    :param texts: an Arrow array of texts for each column; those of nested columns are JSON.
    :param problems: of each row by column, as far as they are known.
    :param sources: each row as a JSON object on one line; without them, the texts are what was given.
    """
    import pyarrow as pa

    if sources is None and any(is_nested(column.type) for column in columns):
        names = [column.name for column in columns]
        rows = zip(*(array.to_pylist() for array in texts), strict=True)
        sources = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows]
    found = [dict(problems[at]) if problems else {} for at in range(len(numbers))]
    arrays = [
        _values(column, array, schema.field(column.name).type, found) if is_nested(column.type) else array
        for column, array in zip(columns, texts, strict=True)
    ]
    encoded = pa.array([json.dumps(by_column) if by_column else None for by_column in found], pa.string())
    as_given = pa.nulls(len(numbers), pa.string()) if sources is None else pa.array(sources, pa.string())
    given = [pa.array(numbers, pa.int64()), encoded, as_given, *arrays]
    return pa.RecordBatch.from_arrays(given, schema=schema)


def _values(column: Field, texts: Any, type_: Any, problems: list[dict[str, str]]) -> Any:
    """The values of a nested column; one that does not fit is null, and its row has a problem."""
    import pyarrow as pa

    values = list[Any]()
    for position, text in enumerate(texts.to_pylist()):
        value = None
        try:
            given = None if text in (None, "") else _parsed(text)
            value = stored_value(column, _with_floats(column.type, given), column.name)
        except UnfitValue as error:
            problems[position][column.name] = f"column {error}"
        except ValueError as error:
            problems[position][column.name] = f"column `{column.name}` is not JSON: {error}"
        values.append(value)
    return pa.array(values, type_)


def _parsed(text: str) -> Any:
    """The value of a JSON text.

    :raises ValueError: it is no JSON, or an object has a key twice.
    """
    return json.loads(text, parse_float=Decimal, object_pairs_hook=unique_keys)


def _with_floats(type_: Type, value: Any) -> Any:
    """A value whose exact numbers are floating point numbers where the type is."""
    if isinstance(type_, Struct) and isinstance(value, dict):
        types = {f.name: f.type for f in type_.fields}
        return {k: _with_floats(types[k], v) if k in types else v for k, v in value.items()}
    if isinstance(type_, List) and isinstance(value, list):
        return [_with_floats(type_.element.type, item) for item in value]
    if isinstance(type_, Map) and isinstance(value, dict):
        return {k: _with_floats(type_.value.type, item) for k, item in value.items()}
    if type_ not in (Primitive("float"), Primitive("double")) or not isinstance(value, Decimal):
        return value
    found = float(value)
    is_lost = (isinf(found) and value.is_finite()) or (not found and bool(value))
    return value if is_lost else found  # an exact number is refused then
