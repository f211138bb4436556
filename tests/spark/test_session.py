from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.iceberg.names import TableName
from icemigrate.spark.java_errors import is_commit_conflict, to_engine_error
from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.spark.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse

OWN_PROCESS = """
import sys
from pathlib import Path
from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.errors import IcemigrateError

SECRET = "-".join(["hush"] * 3)
root = Path(sys.argv[1]) / "with a blank"
root.mkdir()
conf = {**sqlite_catalog_conf(root / "c.db", root / "wh"), "secret": SECRET}
settings = SparkSettings("lake", conf, **ARGS)
try:
    spark = start_spark(settings)
except IcemigrateError as error:
    print("fault:", error.message)
    print("hint:", error.hint)
    sys.exit(0)
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.t (id int) USING iceberg")
spark.sql("INSERT INTO lake.db.t VALUES (1), (2)")
try:
    spark.sql("SELECT nothing FROM lake.db.t")
except Exception:
    pass
lines = ""
for process in Path("/proc").glob("[0-9]*/cmdline"):
    try:
        lines += process.read_text(errors="replace")
    except OSError:
        pass  # it has ended meanwhile
assert "org.apache.spark.deploy.SparkSubmit" in lines
print(spark.table("lake.db.t").count(), "rows;", "shown" if SECRET in lines else "hidden")
"""


def own_process(folder: Path, args: str = "{}", **environ: str) -> subprocess.CompletedProcess[str]:
    """A process that starts Spark for itself, in a folder that should stay empty."""
    import os

    here = folder / "here"
    here.mkdir()
    return subprocess.run(
        [sys.executable, "-c", OWN_PROCESS.replace("ARGS", args), str(folder)],
        cwd=here,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_a_normal_run_is_quiet_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ran = own_process(tmp_path)
    assert (ran.stdout, ran.returncode) == ("2 rows; hidden\n", 0)
    # One line may be there: on a machine whose cache is empty the jars are fetched.
    assert [line for line in ran.stderr.splitlines() if not line.startswith("Downloading ")] == []
    assert list((tmp_path / "here").iterdir()) == []


def test_debugging_shows_what_spark_prints_and_keeps_standard_output_clean(tmp_path: Path) -> None:
    ran = own_process(tmp_path, ICEMIGRATE_DEBUG="1")
    assert ran.stdout == "2 rows; hidden\n"
    assert "UNRESOLVED_COLUMN" in ran.stderr


def test_a_master_that_is_not_one_is_a_fault_with_its_reason(tmp_path: Path) -> None:
    ran = own_process(tmp_path, "{'master': 'nonsense'}")
    assert ran.stdout.startswith("fault: Spark failed to start: ")
    assert "Master must" in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr


def test_the_catalog_is_plain_rows_in_the_sqlite_file(
    spark: SparkSession, warehouse: Warehouse, namespace: str
) -> None:
    spark.sql(f"CREATE TABLE {warehouse.catalog}.{namespace}.t (id int) USING iceberg")
    with sqlite3.connect(warehouse.database) as connection:
        rows = connection.execute(
            "SELECT catalog_name, table_name, metadata_location FROM iceberg_tables"
            " WHERE table_namespace = ?",
            (namespace,),
        ).fetchall()
    assert [row[:2] for row in rows] == [(warehouse.catalog, "t")]
    assert Path(rows[0][2]).is_relative_to(warehouse.path)
    assert Path(rows[0][2]).is_file()


def test_a_second_start_opens_another_catalog_in_the_same_jvm(spark: SparkSession, tmp_path: Path) -> None:
    settings = SparkSettings("second", sqlite_catalog_conf(tmp_path / "c.db", tmp_path / "wh"))
    second = start_spark(settings)
    second.sql("CREATE NAMESPACE second.only_here")
    assert second.sparkContext is spark.sparkContext
    assert [row[0] for row in second.sql("SHOW NAMESPACES IN second").collect()] == ["only_here"]
    assert second.conf.get("spark.sql.catalog.second.type") == "jdbc"
    assert spark.conf.get("spark.sql.catalog.second.type", None) is None


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "ALTER TABLE {table}x DROP COLUMN id",
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view {quoted}x` cannot be found. "
            "Verify the spelling and correctness of the schema and catalog.",
        ),
        ("ALTER TABLE {table} ADD", "[PARSE_SYNTAX_ERROR] Syntax error at or near end of input."),
        (
            "ALTER TABLE {table} ADD COLUMN must int NOT NULL",
            "Incompatible change: cannot add required column: must",
        ),
    ],
)
def test_a_failed_statement_is_one_sentence(
    spark: SparkSession, warehouse: Warehouse, namespace: str, statement: str, message: str
) -> None:
    table = f"{warehouse.catalog}.{namespace}.t"
    spark.sql(f"CREATE TABLE {table} (id int) USING iceberg")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever PySpark makes of it
        spark.sql(statement.format(table=table))
    quoted = "`" + table.replace(".", "`.`")
    assert to_engine_error(caught.value).message == message.format(quoted=quoted)


def test_a_lost_race_is_told_from_other_failures(
    spark: SparkSession, warehouse: Warehouse, namespace: str
) -> None:
    from py4j.protocol import Py4JJavaError

    name = f"{warehouse.catalog}.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id int) USING iceberg")
    jvm = spark._jvm
    assert jvm is not None
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    operations = table.operations()
    base = operations.current()
    spark.sql(f"ALTER TABLE {name} ADD COLUMN other int")
    changed = jvm.org.apache.iceberg.TableMetadata.buildFrom(base).setProperties({"a": "b"}).build()
    with pytest.raises(Py4JJavaError) as caught:
        operations.commit(base, changed)
    assert is_commit_conflict(caught.value)
    fault = to_engine_error(caught.value)
    assert fault.message.startswith("another writer changed the table: ")
    assert len(fault.message.splitlines()) == 1


FAILS_THEN_STARTS = """
import sys
from pathlib import Path
from icemigrate.spark.java_errors import to_engine_error
from icemigrate.spark.session import start_spark, stop_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.errors import EngineError

root = Path(sys.argv[1])
conf = sqlite_catalog_conf(root / "c.db", root / "wh")
try:
    start_spark(SparkSettings("lake", conf, conf={"spark.driver.port": "not a number"}))
except EngineError as error:
    print("fault:", error.message)

def kill(spark):
    process = spark.sparkContext._gateway.proc
    process.kill()
    process.wait()

for end in (stop_spark, lambda spark: spark.stop(), kill):
    spark = start_spark(SparkSettings("lake", conf))
    print(spark.sql("SHOW NAMESPACES IN lake").count())
    end(spark)
try:
    spark.sql("SHOW NAMESPACES IN lake")
except Exception as error:
    print(to_engine_error(error).message)
"""


def test_however_a_session_ended_another_may_follow(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FAILS_THEN_STARTS, str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    fault, *counts, ended = ran.stdout.splitlines()
    assert fault.startswith("fault: Spark failed to start: ")
    assert counts == ["0", "0", "0"]
    assert ended == "Spark's JVM exited"


def test_a_name_that_looks_like_a_variable_arrives(
    spark: SparkSession, warehouse: Warehouse, namespace: str
) -> None:
    """Spark would put values in for ``${…}``, in quoted names and in strings too."""
    session = spark.newSession()
    session.conf.set("spark.sql.variable.substitute", "true")  # as in a session that the user passes in
    for key, value in warehouse.settings.catalog_conf.items():
        session.conf.set(f"spark.sql.catalog.{warehouse.catalog}.{key}", value)
    session.conf.set(f"spark.sql.catalog.{warehouse.catalog}", "org.apache.iceberg.spark.SparkCatalog")
    engine = SparkEngine(session, warehouse.catalog)
    column = "`${HOME}` int COMMENT '${env:HOME}'"
    engine.sql(f"CREATE TABLE {warehouse.catalog}.{namespace}.t ({column}) USING iceberg")
    table = engine.table(TableName((namespace,), "t"))
    assert table is not None
    assert [(f.name, f.doc) for f in table.schema.fields] == [("${HOME}", "${env:HOME}")]
