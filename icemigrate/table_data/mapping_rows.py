"""Rows as mappings by column: Python values, or JSON values of the specification's Appendix D."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from icemigrate.iceberg.arrow_types import arrow_schema
from icemigrate.iceberg.types import Field
from icemigrate.metadata_engine.parquet_values import UnfitValue, stored_value
from icemigrate.table_data.bad_rows import BadRow
from icemigrate.table_data.duckdb_session import quoted_identifier
from icemigrate.table_data.duckdb_types import duckdb_type
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.row_relations import PROBLEM, ROW, LoadRelation
from icemigrate.table_data.row_sources import NumberedRows, with_fine_times


class MappingSource:
    """Rows that have only columns of the table; a column that a row lacks has its write default, or null."""

    is_repeatable = True

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows

    def columns(self) -> frozenset[str]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        return frozenset(str(name) for row in self._rows for name in row)

    def fast(self, db: LoadDatabase, target: LoadTarget) -> tuple[LoadRelation, ...] | None:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        for name in self.columns():
            target.column(name)
        return None

    def numbered(self, db: LoadDatabase, target: LoadTarget) -> Iterator[NumberedRows]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        import pyarrow as pa

        bad, numbers, rows = list[BadRow](), list[int](), list[dict[str, Any]]()
        for number, row in enumerate(self._rows, 1):
            try:
                rows.append({c.name: _value(c, row) for c in target.columns})
                numbers.append(number)
            except UnfitValue as error:
                bad.append(BadRow("", number, f"column {error}", row))
        columns = arrow_schema(target.columns)
        # Nulls of required columns are found with all others.
        loose = pa.schema([field.with_nullable(True) for field in columns])
        table = pa.Table.from_pylist(rows, loose)
        table = table.add_column(0, ROW, [pa.array(numbers, pa.int64())])
        table = table.add_column(0, PROBLEM, [pa.nulls(len(numbers), pa.string())])
        name = f"rows_{uuid4().hex}"
        db.connection.register(name, with_fine_times(table))
        given = db.types(name)
        types = {c.name: given.get(c.name, duckdb_type(c.type)) for c in target.columns}
        yield NumberedRows(LoadRelation(quoted_identifier(name), types, is_numbered=True), lambda: bad)


def _value(column: Field, row: Mapping[str, Any]) -> Any:
    return stored_value(column, row.get(column.name, column.write_default), column.name)
