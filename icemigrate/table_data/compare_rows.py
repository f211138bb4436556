"""Compare the rows of two states of one table, with DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from icemigrate.diagnostics import did_you_mean, format_count
from icemigrate.errors import UsageError
from icemigrate.iceberg.schema import Schema
from icemigrate.results.compare_results import RowDifference, SampleRow, SampleValue
from icemigrate.table_data.duckdb_session import quoted_identifier
from icemigrate.table_data.query_tables import OpenQuery

_LONGEST_VALUE = 200
_BEFORE, _AFTER = "_icemigrate_before", "_icemigrate_after"
"""Names of the two states in SQL that no column has."""


def compare_rows(
    query: OpenQuery, schema: Schema, key: Sequence[str], samples: int, *, is_whole: bool
) -> tuple[RowDifference, Mapping[str, int]]:
    """The rows that differ, and by column the number of changed values.

    :param query: two states of the table, under one schema.
    :param key: names of columns; empty to compare whole rows.
    :param samples: number of rows of each change.
    :param is_whole: whether the states have all rows.
    :raises UsageError: there is no such column, or the key is not unique.
    :raises IcemigrateError: a data file cannot be read.
    """
    columns = [field.name for field in schema.fields]
    _require_columns(key, columns)
    before, after = (quoted_identifier(read.view) for read in query.reads)
    if not key:
        return _whole_rows(query, columns, before, after, samples, is_whole), {}
    for view, which in ((before, "first"), (after, "second")):
        _require_unique(query, key, view, which)
    return _by_key(query, columns, key, before, after, samples, is_whole)


def count_rows(query: OpenQuery) -> list[int]:
    """The number of rows of each state."""
    return [_number(query, f"SELECT count(*) FROM {quoted_identifier(read.view)}") for read in query.reads]


def _require_columns(key: Sequence[str], columns: Sequence[str]) -> None:
    for name in key:
        if name not in columns:
            hint = did_you_mean(name, columns) or "`icemigrate table describe` lists the columns"
            raise UsageError(f"`--key`: the newer snapshot has no column `{name}`", hint)


def _require_unique(query: OpenQuery, key: Sequence[str], view: str, which: str) -> None:
    listed = _column_list(key)
    twice = f"SELECT 1 FROM {view} GROUP BY {listed} HAVING count(*) > 1"
    count = _number(query, f"SELECT count(*) FROM ({twice})")
    if count:
        raise UsageError(
            f"`--key {','.join(key)}` is not unique: {format_count(count, 'key')} of the {which} snapshot "
            f"{'has' if count == 1 else 'have'} several rows",
            "add a column to the key, or compare whole rows without `--key`",
        )


def _whole_rows(
    query: OpenQuery, columns: Sequence[str], before: str, after: str, samples: int, is_whole: bool
) -> RowDifference:
    listed, texts = _column_list(columns), f"SELECT {_columns_as_text(columns)}"
    added = f"SELECT {listed} FROM {after} EXCEPT ALL SELECT {listed} FROM {before}"
    removed = f"SELECT {listed} FROM {before} EXCEPT ALL SELECT {listed} FROM {after}"
    return RowDifference(
        added=_number(query, f"SELECT count(*) FROM ({added})"),
        removed=_number(query, f"SELECT count(*) FROM ({removed})"),
        is_whole=is_whole,
        samples=(
            *_one_sided(query, "added", f"{texts} FROM (FROM ({added}) ORDER BY ALL)", columns, samples),
            *_one_sided(query, "removed", f"{texts} FROM (FROM ({removed}) ORDER BY ALL)", columns, samples),
        ),
    )


def _by_key(
    query: OpenQuery,
    columns: Sequence[str],
    key: Sequence[str],
    before: str,
    after: str,
    samples: int,
    is_whole: bool,
) -> tuple[RowDifference, Mapping[str, int]]:
    on = " AND ".join(
        f"{_BEFORE}.{name} IS NOT DISTINCT FROM {_AFTER}.{name}" for name in map(quoted_identifier, key)
    )
    added = f"FROM {after} {_AFTER} WHERE NOT EXISTS (SELECT 1 FROM {before} {_BEFORE} WHERE {on})"
    removed = f"FROM {before} {_BEFORE} WHERE NOT EXISTS (SELECT 1 FROM {after} {_AFTER} WHERE {on})"
    others = [name for name in columns if name not in key]
    differs = {
        name: f"{_BEFORE}.{quoted_identifier(name)} IS DISTINCT FROM {_AFTER}.{quoted_identifier(name)}"
        for name in others
    }
    any_differs = " OR ".join(differs.values()) or "false"
    both = f"FROM {before} {_BEFORE} JOIN {after} {_AFTER} ON {on} WHERE {any_differs}"
    counts = ["count(*)", *(f"count(*) FILTER ({text})" for text in differs.values())]
    (found,) = query.fetch(f"SELECT {', '.join(counts)} {both}")
    order, first, second = (
        _column_list(key),
        _columns_as_text(columns, f"{_BEFORE}."),
        _columns_as_text(columns, f"{_AFTER}."),
    )
    return (
        RowDifference(
            key=tuple(key),
            added=_number(query, f"SELECT count(*) {added}"),
            removed=_number(query, f"SELECT count(*) {removed}"),
            changed=found[0],
            is_whole=is_whole,
            samples=(
                *_one_sided(query, "added", f"SELECT {second} {added} ORDER BY {order}", columns, samples),
                *_one_sided(query, "removed", f"SELECT {first} {removed} ORDER BY {order}", columns, samples),
                *_changed_rows(
                    query,
                    f"SELECT {first}, {second} {both} ORDER BY {_column_list(key, f'{_AFTER}.')}",
                    columns,
                    key,
                    samples,
                ),
            ),
        ),
        dict(zip(others, found[1:], strict=True)),
    )


def _column_list(names: Sequence[str], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{quoted_identifier(name)}" for name in names)


def _columns_as_text(names: Sequence[str], prefix: str = "") -> str:
    """The columns as text: DuckDB writes every type, and Python has no value for some of them."""
    return ", ".join(f"{prefix}{quoted_identifier(name)}::VARCHAR" for name in names)


def _number(query: OpenQuery, text: str) -> int:
    ((found,),) = query.fetch(text)
    return int(found)


def _one_sided(
    query: OpenQuery, change: str, text: str, columns: Sequence[str], samples: int
) -> Iterator[SampleRow]:
    for row in query.fetch(f"{text} LIMIT {samples}"):
        values = zip(columns, map(_text, row), strict=True)
        yield SampleRow(
            change,
            tuple(
                SampleValue(name, after=value) if change == "added" else SampleValue(name, before=value)
                for name, value in values
            ),
        )


def _changed_rows(
    query: OpenQuery, text: str, columns: Sequence[str], key: Sequence[str], samples: int
) -> Iterator[SampleRow]:
    for row in query.fetch(f"{text} LIMIT {samples}"):
        before, after = row[: len(columns)], row[len(columns) :]
        yield SampleRow(
            "changed",
            tuple(
                SampleValue(name, _text(was), _text(now))
                for name, was, now in zip(columns, before, after, strict=True)
                if name in key or was != now
            ),
        )


def _text(value: Any) -> str | None:
    """A value as text, cut where it is long; ``None`` for null."""
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
