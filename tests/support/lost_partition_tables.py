"""Tables whose partition values Iceberg loses while a column is dropped, and what their rows hold.

What is expected is kept here, in Python; nothing of the product takes part in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icemigrate.iceberg.names import TableName
from icemigrate.spark_sql.identifiers import table_sql
from tests.spark.duckdb_rows import Query, duckdb_rows
from tests.support.undo_project import UndoWorld

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
LONG = "a region whose name is longer than a bound"


@dataclass(frozen=True)
class Column:
    """A column that is dropped: its values as SQL and as Python, one for each row."""

    name: str
    type: str
    terms: list[str]
    values: list[tuple[str, Any]]


def strings(name: str, *terms: str) -> Column:
    """A column of strings: short ones, null, and one that is longer than a bound."""
    values = [("'eu'", "eu"), ("'us'", "us"), ("NULL", None), (f"'{LONG}'", LONG)]
    return Column(name, "string", list(terms), values)


def of_days(name: str, term: str) -> Column:
    """A column of dates, one of them before 1970."""
    days = ["2026-01-01", "1969-12-31", "2026-02-01"]
    return Column(name, "date", [term], [*((f"DATE '{d}'", d) for d in days), ("NULL", None)])


def of_times(name: str, term: str) -> Column:
    """A column of timestamps."""
    days = ["2026-01-01", "1969-12-31", "2026-02-01"]
    values = [(f"TIMESTAMP_NTZ '{d} 01:30:00'", d) for d in days]
    return Column(name, "timestamp", [term], [*values, ("NULL", None)])


NUMBERS = [("7", 7), ("-3", -3), ("3000000000", 3_000_000_000), ("NULL", None)]
MONEY = [(t, Decimal(t)) for t in ("1.25", "-0.50", "70.00")]
IDENTITY = [
    strings("s", "s"),
    Column("n", "long", ["n"], [*NUMBERS]),
    Column("m", "decimal(9,2)", ["m"], [*MONEY, ("NULL", None)]),
    Column("f", "double", ["f"], [(f"DOUBLE({v})", v) for v in (0.5, -2.0, 1000.5)] + [("NULL", None)]),
    Column("b", "boolean", ["b"], [("true", True), ("false", False), ("NULL", None), ("true", True)]),
    Column("i", "int", ["i"], [("1", 1), ("-1", -1), ("NULL", None), ("2147483647", 2147483647)]),
    of_days("d", "d"),
    of_times("t", "t"),
]
TRUNCATED = [
    strings("s", "truncate(1, s)"),
    Column("n", "long", ["truncate(10, n)"], [*NUMBERS]),
    Column("m", "decimal(9,2)", ["truncate(50, m)"], [*MONEY, ("NULL", None)]),
]
OTHERS = [
    strings("s", "bucket(4, s)"),
    of_days("y", "year(y)"),
    of_times("mo", "month(mo)"),
    of_times("d", "day(d)"),
    of_times("h", "hour(h)"),
]
MIXED = [strings("s", "s", "truncate(2, s)"), of_days("d", "month(d)")]


@dataclass
class Partitioned:
    """A table, and its rows by their id."""

    name: str
    columns: list[Column]
    more: str = ""
    terms: list[str] = field(default_factory=list)
    rows: dict[int, Row] = field(default_factory=dict)

    @property
    def table(self) -> TableName:
        return TableName(("db",), self.name)

    def declared(self, format_version: int) -> str:
        """How a migration declares it."""
        columns = "".join(f", {{name: {c.name}, type: '{c.type}'}}" for c in self.columns)
        terms = [*self.terms, *(term for c in self.columns for term in c.terms)]
        return (
            f"{{name: db.{self.name}, "
            f"columns: [{{name: id, type: long}}, {{name: note, type: string}}{columns}], partition_by: "
            f"{json.dumps(terms)}, format_version: {format_version}{self.more}}}"
        )


class Lake:
    """Tables in a catalog of their own: written to, without their columns, and written to again."""

    def __init__(
        self, folder: Path, spark: SparkSession, tables: list[Partitioned], format_version: int
    ) -> None:
        self.world = UndoWorld(folder, spark)
        self.tables = tables
        self.world.file("0001", f"tables: [{', '.join(t.declared(format_version) for t in tables)}]")
        self.world.project.apply(spark=self.world.spark)
        for table in tables:
            for number in range(4):
                values = [column.values[number] for column in table.columns]
                self.sql(table, f"INSERT INTO @ VALUES ({number}, 'n', {', '.join(v for v, _ in values)})")
                row = {c.name: v for c, (_, v) in zip(table.columns, values, strict=True)}
                table.rows[number] = {"note": "n", **row}

    def sql(self, table: Partitioned, text: str) -> None:
        self.world.sql(text, table.table)

    def drop(self) -> None:
        """Drop the columns by a migration."""
        entries = [
            f"{{name: db.{t.name}, partition_by: [], drop_columns: [{', '.join(c.name for c in t.columns)}]}}"
            for t in self.tables
        ]
        self.world.file("0002", f"{{allow: [destructive], because: x, tables: [{', '.join(entries)}]}}")
        self.world.project.apply(spark=self.world.spark)

    def drop_by_hand(self) -> None:
        """Do the same without a migration."""
        for table in self.tables:
            fields = self.world.actual(table.table).spec.live
            for one in fields:
                self.sql(table, f"ALTER TABLE @ DROP PARTITION FIELD `{one.name}`")
            self.sql(table, f"ALTER TABLE @ DROP COLUMNS ({', '.join(c.name for c in table.columns)})")

    def append(self, number: int, where: str = "@") -> None:
        """A row without the columns; Iceberg merges the older manifests."""
        for table in self.tables:
            name = table_sql(self.world.catalog, table.table) if where == "@" else where
            self.sql(table, f"INSERT INTO {name} (id) VALUES ({number})")
            table.rows[number] = {"note": None, **{c.name: None for c in table.columns}}

    def forget(self) -> None:
        """Take all earlier snapshots away, and the tags that keep them."""
        for table in self.tables:
            for name, ref in self.world.actual(table.table).refs.items():
                if ref.kind == "tag":
                    self.sql(table, f"ALTER TABLE @ DROP TAG `{name}`")
            self.call(
                table, "expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1"
            )

    def call(self, table: Partitioned, procedure: str, arguments: str = "") -> None:
        more = f", {arguments}" if arguments else ""
        self.world.spark.sql(
            f"CALL {self.world.catalog}.system.{procedure}(table => 'db.{table.name}'{more})"
        )

    def rollback(self, **options: Any) -> dict[str, tuple[str, ...]]:
        """Take the drop back; what the plan says of each table."""
        plan = self.world.project.plan_rollback(spark=self.world.spark, **options)
        self.world.project.rollback(spark=self.world.spark, **options)
        return {t.declared.name: t.notes for m in plan.plan.migrations for t in m.tables}

    def delete_by_equality(self, table: Partitioned, row_id: int, partition: str) -> None:
        """Delete the rows with one id in one partition, as Flink does: by a file that holds the id."""
        import pyarrow as pa
        from pyarrow import parquet

        java = self.world.engine.java
        loaded = java.table(table.table)
        file = self.world.folder / f"{table.name}-{row_id}.parquet"
        schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
        parquet.write_table(pa.table({"id": pa.array([row_id], pa.int64())}, schema), file)
        builder = java.iceberg.FileMetadata.deleteFileBuilder(loaded.spec())
        builder.ofEqualityDeletes(java.array(java.jvm.int, [1])).withPartitionPath(partition)
        builder.withPath(f"file:{file}").withFormat("PARQUET").withRecordCount(1)
        delta = loaded.newRowDelta()
        delta.addDeletes(builder.withFileSizeInBytes(file.stat().st_size).build())
        delta.commit()
        self.sql(table, "REFRESH TABLE @")

    def reads_right(self, *, by_pyiceberg: bool = True) -> None:
        """Every reader sees every row, and finds it by each of its values."""
        for table in self.tables:
            assert dict(self.by_spark(table)) == table.rows, table.name
            assert not by_pyiceberg or dict(self.by_pyiceberg(table)) == table.rows, table.name
            asked = [(c, v) for c in table.columns for v in dict.fromkeys(c.values)]
            wanted = [
                (at, i)
                for at, (c, (_, v)) in enumerate(asked)
                for i, row in sorted(table.rows.items())
                if row[c.name] == v
            ]
            assert sorted(self.found_by_spark(table, [(c.name, sql) for c, (sql, _) in asked])) == wanted
            for at, (column, (_, value)) in enumerate(asked if by_pyiceberg else ()):
                found = sorted(dict(self.by_pyiceberg(table, column, [value])))
                assert found == [i for a, i in wanted if a == at], (table.name, column.name, value)
            # DuckDB 1.5.5 ends on the partitions by day of the other tables ("INTEGER -> DATE").
            if by_pyiceberg and table.name == "identity":
                self._reads_right_by_duckdb(table)

    def _reads_right_by_duckdb(self, table: Partitioned) -> None:
        scan = f"iceberg_scan('{self.world.locations()[f'db.{table.name}'].removeprefix('file:')}')"
        names = ", ".join(c.name for c in table.columns)
        queries: list[Query] = [(f"SELECT id, {names} FROM {scan} ORDER BY id", [])]
        wanted = [[[i, *(row[c.name] for c in table.columns)] for i, row in sorted(table.rows.items())]]
        for column in table.columns:
            for value in dict.fromkeys(v for _, v in column.values):
                text = f"{value} 01:30:00" if column.type == "timestamp" and value is not None else value
                type_ = {"string": "varchar", "long": "bigint"}.get(column.type, column.type)
                same = f"{column.name} IS NOT DISTINCT FROM CAST(? AS {type_})"
                queries.append((f"SELECT id FROM {scan} WHERE {same} ORDER BY id", [text]))
                wanted.append([[i] for i, row in sorted(table.rows.items()) if row[column.name] == value])
        rows, *found = duckdb_rows(queries)
        days = {at for at, c in enumerate(table.columns, start=1) if c.type in ("date", "timestamp")}
        rows = [[v[:10] if at in days and v else v for at, v in enumerate(row)] for row in rows]
        assert [rows, *found] == json.loads(json.dumps(wanted, default=str)), table.name

    def by_spark(self, table: Partitioned) -> Iterator[tuple[int, Row]]:
        """All rows of a table as Spark reads them."""
        for row in self.world.spark.table(table_sql(self.world.catalog, table.table)).collect():
            yield row["id"], {k: _plain(v) for k, v in row.asDict().items() if k != "id"}

    def row_ids(self) -> dict[tuple[str, int], int]:
        """The ids that format version 3 gives to rows."""
        return {
            (table.name, row[0]): row[1]
            for table in self.tables
            for row in self.world.spark.sql(
                f"SELECT id, _row_id FROM {table_sql(self.world.catalog, table.table)}"
            ).collect()
        }

    def found_by_spark(self, table: Partitioned, asked: list[tuple[str, str]]) -> list[tuple[int, int]]:
        """Which rows Spark finds for each of these values."""
        name = table_sql(self.world.catalog, table.table)
        query = " UNION ALL ".join(
            f"SELECT {at}, id FROM {name} WHERE {column} <=> {sql}" for at, (column, sql) in enumerate(asked)
        )
        return [(at, i) for at, i in self.world.spark.sql(query).collect()]

    def by_pyiceberg(
        self, table: Partitioned, column: Column | None = None, value: Sequence[Any] = ()
    ) -> Iterator[tuple[int, Row]]:
        """The rows of a table as PyIceberg reads them, all or those with one value."""
        from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo, IsNull
        from pyiceberg.table import StaticTable

        which: BooleanExpression = AlwaysTrue()
        for one in value:
            assert column is not None
            text = f"{one}T01:30:00" if column.type == "timestamp" else one
            which = IsNull(column.name) if one is None else EqualTo(column.name, text)
        location = self.world.locations()[f"db.{table.name}"]
        for row in StaticTable.from_metadata(location).scan(which).to_arrow().to_pylist():
            yield row["id"], {k: _plain(v) for k, v in row.items() if k != "id"}


def _plain(value: Any) -> Any:
    return str(value)[:10] if hasattr(value, "isoformat") else value
