"""Writes and reads the rows of migration tests, as texts that Spark casts to the types of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from icemigrate.iceberg.names import TableName
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark_sql.identifiers import path_sql, quote
from icemigrate.spark_sql.literals import string_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

CaseRow = tuple["str | None", ...]


class CaseTables:
    """The tables of one test, in a session of Spark.

    :param catalog: the name of the test's catalog.
    """

    def __init__(self, session: SparkSession, catalog: str) -> None:
        self.session, self.catalog = session, catalog
        with convert_java_errors():
            session.conf.set("spark.sql.session.timeZone", "UTC")
            session.conf.set("spark.sql.ansi.enabled", "true")
            # The method of the session asks the active session, which may be another one.
            session.sql(f"USE {quote(catalog)}")

    def columns(self, table: TableName) -> tuple[str, ...]:
        """The names of the columns."""
        with convert_java_errors():
            return tuple(self._frame(table).columns)

    def insert(
        self, table: TableName, columns: Sequence[str], rows: Sequence[Mapping[str, str | None]]
    ) -> None:
        """Append rows; a column that they do not name is null.

        :raises EngineError: a value has no such type, or a required column is null.
        """
        if not rows:
            return
        with convert_java_errors():
            schema = self._frame(table).schema
            self._append(table, self._typed(columns, rows, schema), schema)

    def insert_file(self, table: TableName, path: str) -> None:
        """Append the rows of a Parquet file, by the names of its columns.

        :raises EngineError: the file cannot be read, or does not fit.
        """
        with convert_java_errors():
            self._append(table, self.session.read.parquet(path), self._frame(table).schema)

    def rows(self, table: TableName, columns: Sequence[str]) -> list[CaseRow]:
        """The rows of a table as texts."""
        with convert_java_errors():
            return _rows_as_text(self._frame(table), columns)

    def result(self, sql: str) -> tuple[tuple[str, ...], list[CaseRow]]:
        """The columns and rows of a query, which cannot change anything.

        :raises EngineError: Spark refuses it.
        """
        with convert_java_errors():
            found = self._query(sql)
            return tuple(found.columns), _rows_as_text(found, found.columns)

    def expected_of_table(
        self, table: TableName, columns: Sequence[str], rows: Sequence[Mapping[str, str | None]]
    ) -> list[CaseRow]:
        """Expected rows as texts, cast to the types of a table as its rows are."""
        with convert_java_errors():
            return self._expected(columns, rows, self._frame(table).schema)

    def expected_of_query(
        self, sql: str, columns: Sequence[str], rows: Sequence[Mapping[str, str | None]]
    ) -> list[CaseRow]:
        """Expected rows as texts, cast to the types of a query's result."""
        with convert_java_errors():
            return self._expected(columns, rows, self._query(sql).schema)

    def rows_of_file(self, table: TableName, path: str) -> tuple[tuple[str, ...], list[CaseRow]]:
        """The columns and rows of a Parquet file as texts, cast to the types of a table."""
        with convert_java_errors():
            found, schema = self.session.read.parquet(path), self._frame(table).schema
            casts = [found[quote(n)].cast(schema[n].dataType).alias(n) for n in found.columns]
            return tuple(found.columns), _rows_as_text(found.select(*casts), found.columns)

    def _query(self, sql: str) -> DataFrame:
        # A statement that writes is no query in brackets.
        return self.session.sql(f"SELECT * FROM (\n{sql}\n)")

    def _frame(self, table: TableName) -> DataFrame:
        return self.session.table(path_sql((self.catalog, *table.namespace, table.name)))

    def _append(self, table: TableName, frame: DataFrame, schema: StructType) -> None:
        from pyspark.sql import functions

        there = set(frame.columns)
        columns = [
            (frame[quote(f.name)] if f.name in there else functions.lit(None)).cast(f.dataType).alias(f.name)
            for f in schema.fields
        ]
        frame.select(*columns).writeTo(path_sql((self.catalog, *table.namespace, table.name))).append()

    def _expected(
        self, columns: Sequence[str], rows: Sequence[Mapping[str, str | None]], schema: StructType
    ) -> list[CaseRow]:
        return _rows_as_text(self._typed(columns, rows, schema), columns) if rows else []

    def _typed(
        self, columns: Sequence[str], rows: Sequence[Mapping[str, str | None]], schema: StructType
    ) -> DataFrame:
        """The rows as a frame with the types of a schema."""
        from pyspark.sql import functions

        values = ", ".join(f"({', '.join(_literal(row.get(name)) for name in columns)})" for row in rows)
        names = ", ".join(f"c{number}" for number in range(len(columns)))
        texts = self.session.sql(f"SELECT * FROM VALUES {values} AS t({names})")
        types = {f.name: f.dataType for f in schema.fields}
        return texts.select(
            *(
                _cast(functions.col(f"c{number}"), types[name]).alias(name)
                for number, name in enumerate(columns)
            )
        )


def _literal(text: str | None) -> str:
    return "CAST(NULL AS STRING)" if text is None else string_sql(text)


def _cast(column: Column, type_: DataType) -> Column:
    from pyspark.sql import functions

    if not _is_nested(type_):
        return column.cast(type_)
    return functions.from_json(column, type_, {"mode": "FAILFAST"})  # type: ignore[arg-type]


def _is_nested(type_: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    return isinstance(type_, (ArrayType, MapType, StructType))


def _rows_as_text(frame: DataFrame, columns: Sequence[str]) -> list[CaseRow]:
    """The rows as texts: JSON for nested values, hexadecimal digits for bytes."""
    from pyspark.sql import functions
    from pyspark.sql.types import BinaryType

    shown = []
    for name in columns:
        column, type_ = frame[quote(name)], frame.schema[name].dataType
        if _is_nested(type_):
            shown.append(functions.to_json(column, {"ignoreNullFields": "false"}))
        else:
            shown.append(functions.hex(column) if isinstance(type_, BinaryType) else column.cast("string"))
    return [tuple(row) for row in frame.select(*shown).collect()]
