"""Rows as mappings by column: Python values, or JSON values of the specification's Appendix D.

Values of Arrow, NumPy and pandas are those of Python that they are equal to; ``NA``,
``NaT`` and ``masked`` are null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from icemigrate.errors import UsageError
from icemigrate.iceberg.arrow_types import arrow_schema
from icemigrate.iceberg.types import Field, List
from icemigrate.metadata_engine.parquet_values import UnfitValue, stored_value
from icemigrate.table_data.arrow_columns import readable_arrow
from icemigrate.table_data.bad_rows import BadRow
from icemigrate.table_data.duckdb_session import quoted_identifier
from icemigrate.table_data.duckdb_types import duckdb_type
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.row_relations import PROBLEM, ROW, SOURCE, LoadRelation
from icemigrate.table_data.row_sources import NumberedRows


class MappingSource:
    """Rows that have only columns of the table; a column that a row lacks has its write default, or null."""

    is_repeatable, size = True, None

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows

    def columns(self) -> frozenset[str]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        return frozenset(str(name) for row in self._rows for name in row)

    def common_columns(self) -> frozenset[str]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        if not self._rows:
            return frozenset()
        # Keys are compared row by row: a set for each of a million rows takes most of a gigabyte.
        return frozenset(map(str, frozenset(self._rows[0]).intersection(*self._rows)))

    def fast(self, db: LoadDatabase, target: LoadTarget) -> tuple[LoadRelation, ...] | None:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        for name in self.columns():
            target.column(name)
        return None

    def _rows_for(self, _target: LoadTarget) -> Iterable[Mapping[str, Any]]:
        return self._rows

    def numbered(self, db: LoadDatabase, target: LoadTarget) -> Iterator[NumberedRows]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        import pyarrow as pa

        bad, numbers, rows = list[BadRow](), list[int](), list[dict[str, Any]]()
        for number, row in enumerate(self._rows_for(target), 1):
            values, problems = dict[str, Any](), list[str]()
            for column in target.columns:
                try:
                    values[column.name] = _value(column, row)
                except UnfitValue as error:
                    problems.append(f"column {error}")
            if problems:
                bad.append(BadRow("", number, tuple(problems), row))
            else:
                rows.append(values)
                numbers.append(number)
        columns = arrow_schema(target.columns)
        # Nulls of required columns are found with all others.
        loose = pa.schema([field.with_nullable(True) for field in columns])
        table = pa.Table.from_pylist(rows, loose)
        table = table.add_column(0, ROW, [pa.array(numbers, pa.int64())])
        for name in (PROBLEM, SOURCE):
            table = table.add_column(0, name, [pa.nulls(len(numbers), pa.string())])
        name = f"rows_{uuid4().hex}"
        db.connection.register(name, readable_arrow(table))
        given = db.types(name)
        types = {c.name: given.get(c.name, duckdb_type(c.type)) for c in target.columns}
        yield NumberedRows(LoadRelation(quoted_identifier(name), types, is_numbered=True), lambda: bad)


class ColumnMappingSource(MappingSource):
    """A mapping of sequences: columns with their values; or one row, where all these columns have lists."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__([data])
        self._data = data

    def _rows_for(self, target: LoadTarget) -> Iterable[Mapping[str, Any]]:
        """See :class:`MappingSource`.

        :raises UsageError: the columns differ in their number of rows.
        """
        if all(isinstance(target.column(name).type, List) for name in self._data):
            return self._rows
        require_equal_lengths(self._data)
        return (dict(zip(self._data, row, strict=True)) for row in zip(*self._data.values(), strict=True))


def require_equal_lengths(data: Mapping[Any, Any]) -> None:
    """Check that the columns of a mapping have the same number of rows.

    :raises UsageError: they differ.
    """
    counts = {name: len(values) for name, values in data.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"`{name}` has {count:,}" for name, count in counts.items())
        raise UsageError(
            f"the columns of the data have different numbers of rows: {shown}",
            "give each column a value for each row; `None` is a null",
        )


def _value(column: Field, row: Mapping[str, Any]) -> Any:
    given = row.get(column.name, column.write_default)
    try:
        value = plain_value(given)
    except ValueError as error:  # Arrow needs pandas for nanoseconds in a list
        raise UnfitValue(f"`{column.name}` cannot have the value {given}: {error}") from error
    return stored_value(column, value, column.name)


def plain_value(value: Any) -> Any:
    """The value of Python that a value of Arrow, NumPy or pandas is equal to; any other is itself.

    :raises ValueError: Arrow cannot convert the value.
    """
    if isinstance(value, dict):
        return {plain_value(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    library, kind = type(value).__module__.partition(".")[0], type(value).__name__
    if library == "pandas" and kind in ("NAType", "NaTType"):
        return None
    if library == "pandas" and kind == "Timestamp":
        return value.isoformat()  # a `datetime` has no nanoseconds
    if library == "pyarrow":
        return _plain_arrow_value(value, kind)
    if library != "numpy":
        return value
    if kind == "MaskedConstant":
        return None
    if kind in ("ndarray", "MaskedArray"):
        if not value.shape:
            return plain_value(value[()])
        return plain_value(value.tolist() if value.dtype.kind not in "mM" else list(value))
    if kind == "datetime64":
        return None if str(value) == "NaT" else str(value)
    return value.item()


def _plain_arrow_value(value: Any, kind: str) -> Any:
    import pyarrow as pa

    if kind.endswith("Array"):
        return plain_value(list(value))
    if not kind.endswith("Scalar"):
        return value
    if kind == "MapScalar":
        return None if not value.is_valid else {plain_value(k): plain_value(v) for k, v in value.as_py()}
    if kind in ("TimestampScalar", "Time64Scalar") and value.type.unit == "ns":
        return value.cast(pa.string()).as_py()  # a value of Python has no nanoseconds
    return plain_value(value.as_py())
