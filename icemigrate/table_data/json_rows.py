"""Rows of JSON lines: one object for each line; a line without text is passed over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from icemigrate.errors import UsageError
from icemigrate.iceberg.types import Field, is_nested
from icemigrate.metadata_engine.parquet_values import surrogate_problem
from icemigrate.table_data.bad_rows import BadRow
from icemigrate.table_data.csv_rows import require_encoding
from icemigrate.table_data.input_files import InputFile
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.numbered_batches import numbered_batch, numbered_schema
from icemigrate.table_data.row_relations import LoadRelation
from icemigrate.table_data.row_sources import NumberedRows, register

_BATCH = 20_000
_SHOWN = 200


class _Number(str):
    """A number as it is written, so that no digit is lost."""

    __slots__ = ()


class JsonSource:
    """Files of JSON lines."""

    is_repeatable = True

    def __init__(self, files: Sequence[InputFile]) -> None:
        self._files, self.size = tuple(files), sum(file.size for file in files)
        keys = {file: _keys(file) for file in self._files}
        self._columns = {file: tuple(found) for file, (found, _) in keys.items()}
        self._common = frozenset.intersection(*(common for _, common in keys.values()))

    def columns(self) -> frozenset[str]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        return frozenset(name for names in self._columns.values() for name in names)

    def common_columns(self) -> frozenset[str]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        return self._common

    def fast(self, db: LoadDatabase, target: LoadTarget) -> tuple[LoadRelation, ...] | None:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        for file, names in self._columns.items():
            target.require_columns(names, file.shown)
        return None

    def numbered(self, db: LoadDatabase, target: LoadTarget) -> Iterator[NumberedRows]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        import pyarrow as pa

        for file, names in self._columns.items():
            columns = tuple(target.column(name) for name in names)
            schema = numbered_schema(columns)
            unreadable = list[BadRow]()
            reader = pa.RecordBatchReader.from_batches(schema, _batches(file, columns, schema, unreadable))
            relation = register(db, reader, file.shown, columns)
            yield NumberedRows(relation, lambda unreadable=unreadable: unreadable)  # type: ignore[misc]


class _RepeatedKeys:
    """The keys that objects of a row have twice; JSON readers differ in which value they take."""

    def __init__(self) -> None:
        self.found = list[str]()

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The object of some keys and values."""
        value = dict(pairs)
        if len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            self.found.append(next(key for key in keys if keys.count(key) > 1))
        return value


def _objects(file: InputFile) -> Iterator[tuple[int, str, Any, str | None]]:
    """The line, text, value and problem of each row; the value is an error where it is no object."""
    repeated = _RepeatedKeys()
    with file.content() as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            try:
                value = json.loads(
                    text, parse_float=_Number, parse_int=_Number, object_pairs_hook=repeated.object
                )
            except (ValueError, RecursionError) as error:
                value = ValueError(f"it is not JSON: {getattr(error, 'msg', error)}")
            if not isinstance(value, (dict, ValueError)):
                value = ValueError("it is not an object")
            problem = f"an object has the key `{repeated.found[0]}` twice" if repeated.found else None
            repeated.found.clear()
            yield number, text.rstrip("\n"), value, problem


def _keys(file: InputFile) -> tuple[Iterable[str], frozenset[str]]:
    """The keys of any row, and those of every row.

    :raises UsageError: the file is no text in UTF-8, or has no object.
    """
    require_encoding(file)
    counts = dict[str, int]()
    rows = 0
    for _, _, value, _ in _objects(file):
        if isinstance(value, dict):
            rows += 1
            for key in value:
                counts[key] = counts.get(key, 0) + 1
    if not rows:
        raise UsageError(f"{file.shown}: no line has a JSON object", "write one object in each line")
    return counts, frozenset(key for key, count in counts.items() if count == rows)


def _batches(
    file: InputFile, columns: Sequence[Field], schema: Any, unreadable: list[BadRow]
) -> Iterator[Any]:
    import pyarrow as pa

    string = pa.string()
    numbers, texts, problems = list[int](), [list[str | None]() for _ in columns], list[dict[str, str]]()
    for number, text, value, problem in _objects(file):
        if isinstance(value, ValueError) or problem is not None:
            shown = str(value) if problem is None else problem
            unreadable.append(BadRow(file.shown, number, (shown,), {"line": text[:_SHOWN]}))
            continue
        numbers.append(number)
        problems.append({})
        for position, column in enumerate(columns):
            try:
                texts[position].append(_text(column, value.get(column.name, column.write_default)))
            except ValueError as error:
                problems[-1][column.name] = str(error)
                texts[position].append(None)
        if len(numbers) == _BATCH:
            yield numbered_batch(
                schema, columns, numbers, [pa.array(t, pa.string()) for t in texts], problems
            )
            numbers, texts, problems = [], [[] for _ in columns], []
    if numbers:
        yield numbered_batch(schema, columns, numbers, [pa.array(t, string) for t in texts], problems)


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
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)}: {_encoded(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_encoded, value))}]"
    return json.dumps(value)
