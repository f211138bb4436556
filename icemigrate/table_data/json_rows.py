"""Rows of JSON files: lines with one object each, or one array of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.iceberg.types import Field, is_nested
from icemigrate.metadata_engine.parquet_values import surrogate_problem
from icemigrate.table_data.bad_rows import BadRow
from icemigrate.table_data.csv_rows import require_encoding
from icemigrate.table_data.input_files import InputFile
from icemigrate.table_data.json_objects import JsonNumber, is_array, json_rows
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.numbered_batches import numbered_batch, numbered_schema
from icemigrate.table_data.row_relations import LoadRelation
from icemigrate.table_data.row_sources import NumberedRows, register

_BATCH = 20_000


class _Keys(Frozen):
    """The keys of a file.

    :param lines: by key the line of the first row that has it.
    :param common: the keys that every row has.
    :param rows: how many rows are objects.
    """

    lines: Mapping[str, int]
    common: frozenset[str]
    rows: int


class JsonSource:
    """JSON files."""

    is_repeatable = True

    def __init__(self, files: Sequence[InputFile]) -> None:
        self._files, self.size = tuple(files), sum(file.size for file in files)
        # An empty array has no row that lacks a required column.
        self._keys = {file: keys for file in self._files if (keys := _keys(file)).rows}

    def columns(self) -> frozenset[str]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        return frozenset(name for keys in self._keys.values() for name in keys.lines)

    def common_columns(self) -> frozenset[str]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        found = [keys.common for keys in self._keys.values()]
        return frozenset.intersection(*found) if found else frozenset()

    def fast(self, db: LoadDatabase, target: LoadTarget) -> tuple[LoadRelation, ...] | None:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        known = {column.name for column in target.columns}
        for file, keys in self._keys.items():
            unknown = next((name for name in keys.lines if name not in known), None)
            place = file.shown if unknown is None else f"{file.shown}:{keys.lines[unknown]}"
            target.require_columns(tuple(keys.lines), place)
        return None

    def numbered(self, db: LoadDatabase, target: LoadTarget) -> Iterator[NumberedRows]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        import pyarrow as pa

        for file, keys in self._keys.items():
            columns = tuple(target.column(name) for name in keys.lines)
            schema = numbered_schema(columns)
            unreadable = list[BadRow]()
            reader = pa.RecordBatchReader.from_batches(schema, _batches(file, columns, schema, unreadable))
            relation = register(db, reader, file.shown, columns)
            yield NumberedRows(relation, lambda unreadable=unreadable: unreadable)  # type: ignore[misc]


def _keys(file: InputFile) -> _Keys:
    """The keys of a file.

    :raises UsageError: the file is no text in UTF-8, or has no object.
    """
    require_encoding(file)
    counts, lines = dict[str, int](), dict[str, int]()
    rows = others = 0
    for row in json_rows(file):
        if isinstance(row.value, ValueError):
            others += 1
            continue
        rows += 1
        for key in row.value:
            counts[key] = counts.get(key, 0) + 1
            lines.setdefault(key, row.line)
    if not rows and is_array(file):
        if others:
            raise file.error("no element of its array is an object", "write one object for each row")
    elif not rows:
        raise file.error("no line has a JSON object", "write one object in each line, or an array of objects")
    return _Keys(lines, frozenset(key for key, count in counts.items() if count == rows), rows)


def _batches(
    file: InputFile, columns: Sequence[Field], schema: Any, unreadable: list[BadRow]
) -> Iterator[Any]:
    import pyarrow as pa

    string = pa.string()
    numbers, texts, problems = list[int](), [list[str | None]() for _ in columns], list[dict[str, str]]()
    sources = list[str]()
    for row in json_rows(file):
        value = row.value
        if isinstance(value, ValueError) or row.problem is not None:
            shown = str(value) if row.problem is None else row.problem
            unreadable.append(BadRow(file.shown, row.line, (shown,), {"line": row.text}))
            continue
        numbers.append(row.line)
        sources.append(row.text)
        problems.append({})
        for position, column in enumerate(columns):
            try:
                texts[position].append(_text(column, value.get(column.name, column.write_default)))
            except ValueError as error:
                problems[-1][column.name] = str(error)
                texts[position].append(None)
        if len(numbers) == _BATCH:
            arrays = [pa.array(t, string) for t in texts]
            yield numbered_batch(schema, columns, numbers, arrays, problems, sources)
            numbers, texts, problems, sources = [], [[] for _ in columns], [], []
    if numbers:
        arrays = [pa.array(t, string) for t in texts]
        yield numbered_batch(schema, columns, numbers, arrays, problems, sources)


def _text(column: Field, value: Any) -> str | None:
    """A value as a text.

    :raises ValueError: an object or a list is the value of a plain column.
    """
    if value is None:
        return None
    if is_nested(column.type):
        return _encoded(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        raise ValueError(f"column `{column.name}` cannot have an object or a list as its value")
    text = str(value)
    if (problem := surrogate_problem(text)) is not None:
        raise ValueError(f"column `{column.name}` cannot have its value: {problem}")
    return text


def _encoded(value: Any) -> str:
    """JSON with numbers as they were written."""
    if isinstance(value, JsonNumber):
        return str(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)}: {_encoded(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_encoded, value))}]"
    return json.dumps(value)
