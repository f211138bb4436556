"""Rows that Python wrote, read, pruned and changed by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from icemigrate.errors import UsageError
from icemigrate.execution.spark_start import LazySpark
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.table_data.insert_rows import insert_data
from icemigrate.table_data.load_target import load_target
from icemigrate.table_data.query_tables import query_table
from icemigrate.table_data.row_changes import delete_data, update_data
from icemigrate.table_data.spark_expressions import spark_condition
from icemigrate.table_data.upsert_rows import upsert
from tests.support.table_project import TableProject
from tests.support.written_tables import WrittenTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = """
format_version: {version}
columns:
  - {{name: id, type: long, required: true}}
  - {{name: city, type: string}}
  - {{name: amount, type: "decimal(10,2)"}}
  - {{name: at, type: timestamptz}}
  - {{name: tags, type: "list<struct<k: string, v: double>>"}}
partition_by: ["bucket(4, id)", "truncate(2, city)", month(at)]
sort_by: [city]
"""
ROWS = [
    {
        "id": number,
        "city": None if number % 7 == 0 else f"C{number % 3}",
        "amount": f"{number}.25",
        "at": f"19{60 + number}-0{1 + number % 9}-15 00:00:00+00:00",
        "tags": [{"k": "a", "v": 0.5}] if number % 2 else [],
    }
    for number in range(1, 30)
]


class SparkTables:
    """Tables of one project, which Python and Spark write."""

    def __init__(self, written: WrittenTables, engine: SparkEngine) -> None:
        self.written, self.engine = written, engine

    def name(self, table: str) -> str:
        return f"{self.engine.catalog_name}.{table}"

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        self.engine.sql(f"REFRESH TABLE {self.name(table)}")
        return self.engine.ask(f"SELECT id, city, CAST(amount AS STRING) FROM {self.name(table)} ORDER BY id")

    def planned_files(self, table: str, column: str, value: Any) -> int:
        """How many data files Spark reads for rows with a value."""
        jvm: Any = self.engine.session._jvm
        session: Any = self.engine.session
        found = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            session._jsparkSession, self.name(table)
        )
        found.refresh()
        expression = jvm.org.apache.iceberg.expressions.Expressions.equal(column, value)
        tasks = found.newScan().filter(expression).planFiles().iterator()
        count = 0
        while tasks.hasNext():
            tasks.next()
            count += 1
        return count


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkTables]:
    folder: Path = tmp_path_factory.mktemp("written_in_spark")
    project = TableProject.create(folder)
    with project.tables() as session:
        session.store.create_namespace(("sales",))
        engine = LazySpark(session.environment, None, lambda: None)()
        yield SparkTables(WrittenTables(project, folder, session), engine)


def expected(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["id"], row["city"], row["amount"]) for row in rows]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_spark_reads_prunes_and_changes_what_python_wrote(tables: SparkTables, version: int) -> None:
    written, session = tables.written, tables.written.session
    name = written.create(TABLE.format(version=version))
    insert_data(session, name, ROWS[:15])
    insert_data(session, name, ROWS[15:])
    assert tables.rows(name) == expected(ROWS)
    files = len(written.data_files(name))
    assert 1 <= tables.planned_files(name, "city", "C1") < files
    assert 1 <= tables.planned_files(name, "id", 5) < files

    notes = list[str]()
    assert delete_data(session, name, "city = 'C1'", notes.append).deleted > 0
    left = [row for row in ROWS if row["city"] != "C1"]
    assert tables.rows(name) == expected(left)
    done = update_data(session, name, {"amount": "amount + 1"}, "id = 2", notes.append)
    assert (done.updated, done.spark_reason is not None) == (1, version == 3)
    data = pa.table({"id": [2, 3, 100], "city": ["C2", "Rome", "Bern"]})
    done = upsert(session, name, data, ["id"], notes.append)
    assert (done.inserted, done.updated, done.unchanged) == (1, 1, 1)
    rows = {row[0]: row[1:] for row in tables.rows(name)}
    assert (rows[2], rows[3], rows[100]) == (("C2", "3.25"), ("Rome", "3.25"), ("Bern", None))
    assert len(notes) == (3 if version == 3 else 0)

    tables.engine.sql(f"INSERT INTO {tables.name(name)} (id, city) VALUES (200, 'Kyiv')")
    assert insert_data(session, name, [{"id": 201, "city": "Kyiv"}]).rows == 1
    assert [row[0] for row in tables.rows(name)][-3:] == [100, 200, 201]


def test_equality_of_a_table_with_merge_on_read(tables: SparkTables) -> None:
    written, session = tables.written, tables.written.session
    name = written.create(
        TABLE.format(version=2)
        + "properties: {write.delete.mode: merge-on-read, write.update.mode: merge-on-read}\n"
    )
    insert_data(session, name, ROWS)
    assert delete_data(session, name, "id < 4").spark_reason
    assert tables.rows(name) == expected(ROWS[3:])
    # Position deletes of Spark are applied before Python writes a file again.
    data = pa.table({"id": [4], "city": ["Lima"]})
    assert upsert(session, name, data, ["id"]).spark_reason is None
    assert [row[:2] for row in tables.rows(name)][:2] == [(4, "Lima"), (5, "C2")]


def test_duckdb_and_spark_read_permitted_expressions_alike(tables: SparkTables) -> None:
    written, session = tables.written, tables.written.session
    names = [written.create(TABLE.format(version=version)) for version in (2, 3)]
    for name in names:
        insert_data(session, name, [*ROWS, {"id": 100, "city": "C_\\\n'é"}])
    columns = load_target(session.load(names[0])).columns
    for where in (
        "city = 'C1' OR NOT id <= 20",
        "city <> 'C1' AND city IS NOT NULL",
        "city IS DISTINCT FROM 'C1'",
        "city NOT IN ('C1', 'C2')",
        "city IN ('C1', NULL)",
        "city LIKE 'C__%' OR city NOT LIKE '%1'",
        r"city = e'C_\\\n''é' OR city > 'C1'",
        "id BETWEEN -1 AND 5 OR id NOT BETWEEN 7 AND 50",
        "amount > -1.05 AND amount * 2 - 1 < 20.5 AND abs(-amount) >= 3",
        "amount * 0.1 > 1e0",
        "\"at\" < TIMESTAMPTZ '1970-08-15 02:00:00+02'",
        "coalesce(city, 'none') = 'none' AND (city IS NULL) = true",
        "tags IS NULL OR DATE '2024-02-29' < DATE '2024-01-31'",
    ):
        found = query_table(session, names[0], where, ["id"]).column("id").to_pylist()
        in_spark = spark_condition(where, columns, "--where")
        rows = tables.engine.ask(f"SELECT id FROM {tables.name(names[0])} WHERE {in_spark} ORDER BY id")
        assert sorted(found) == [row[0] for row in rows], where
    values = {"amount": "amount * 2 + 1", "city": r"coalesce(city, e'\\')"}
    reasons = [update_data(session, name, values, "id > 5").spark_reason for name in names]
    assert [reason is not None for reason in reasons] == [False, True]
    assert tables.rows(names[0]) == tables.rows(names[1])


def test_changes_of_rows_in_orc_and_avro(tables: SparkTables) -> None:
    written, session = tables.written, tables.written.session
    name = written.create(TABLE.format(version=2))
    insert_data(session, name, ROWS[:1])
    for number, file_format in ((200, "orc"), (201, "avro")):
        tables.engine.sql(
            f"ALTER TABLE {tables.name(name)} SET TBLPROPERTIES ('write.format.default' = '{file_format}')"
        )
        tables.engine.sql(f"INSERT INTO {tables.name(name)} (id, city) VALUES ({number}, 'Kyiv')")
    reason = f"DuckDB does not read table `{name}`, because its data files are in Avro and ORC"
    assert update_data(session, name, {"city": "'Lviv'"}, "id = 200").spark_reason == reason
    data = pa.table({"id": [201, 202], "city": ["Odesa", "Lima"]})
    assert upsert(session, name, data, ["id"]).spark_reason is not None
    assert delete_data(session, name, "id = 1").spark_reason is not None
    assert [row[:2] for row in tables.rows(name)] == [(200, "Lviv"), (201, "Odesa"), (202, "Lima")]


FRAME_COLUMNS = {
    "x": "long", "price": "decimal(9,2)", "share": "double", "at": "timestamptz", "local": "timestamp",
    "s": "struct<a: int>", "m": "map<string, int>",
}  # fmt: skip
FRAME_ROWS = """
(1, 1.50, double('NaN'), timestamp '2024-01-01 09:00:00', timestamp_ntz '2024-01-01 10:00:00',
 named_struct('a', 1), map('k', 2)), (2, null, null, null, null, null, null)
"""


def test_a_frame_of_spark_is_inserted_and_upserted(tables: SparkTables) -> None:
    spark, written = tables.engine.session, tables.written
    frame = spark.sql(f"SELECT * FROM VALUES {FRAME_ROWS} AS rows({', '.join(FRAME_COLUMNS)})")
    entries = ", ".join(f'{{name: {name}, type: "{type_}"}}' for name, type_ in FRAME_COLUMNS.items())
    table = written.create(f"columns: [{entries}]")
    assert insert_data(written.session, table, frame).rows == 2
    tables.engine.sql(f"REFRESH TABLE {tables.name(table)}")
    found = spark.sql(f"SELECT * FROM {tables.name(table)} ORDER BY x").collect()
    assert list(map(str, found)) == list(map(str, frame.orderBy("x").collect()))
    changed = frame.selectExpr("x + 1 AS x", "x / 2 AS share")
    done = upsert(written.session, table, changed, ["x"])
    assert (done.updated, done.inserted) == (1, 1)
    assert written.rows(table, "x", "share")[1:] == [(2, 0.5), (3, 1.0)]
    failing = spark.sql("SELECT id AS x, 1 / (id - id) AS share FROM range(1)")
    with pytest.raises(UsageError, match=r"the DataFrame cannot be read: .*DIVIDE_BY_ZERO"):
        insert_data(written.session, table, failing)
