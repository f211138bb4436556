"""The lake of `make init-infra`: the repository's migrations on Postgres, S3 and Iceberg's REST server."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

import icemigrate
from icemigrate.execution.spark_start import spark_settings
from icemigrate.project import choose_environment, open_project, pyiceberg_properties
from icemigrate.spark.session import start_spark
from infra.__main__ import PROJECT, down, up
from infra.lake import BUCKET, CATALOG, DATABASE, DATABASE_USER, HOST, Lake, lake
from infra.postgres import find_programs
from tests.servers.processes import free_ports
from tests.servers.trino import Trino, rest_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSIONS = tuple(f"{number:04}" for number in range(1, 8))
DAY = "2026-01-02 10:00:00"
TRADES = [
    (1, "symbol", "string", True),
    (2, "company_id", "long", True),
    (3, "exchange", "string", True),
    (4, "exchange_timestamp", "timestamp", True),
    (5, "price", "decimal(18, 6)", True),
    (6, "quantity", "long", True),
    (8, "venue", "string", True),
    (12, "settlement_venue", "string", False),
    (9, "buyer_id", "string", False),
    (10, "ingestion_timestamp", "timestamp", True),
    (11, "sequence_number", "long", False),
]
QUOTES = [
    (1, "symbol", "string", True),
    (2, "company_id", "long", True),
    (3, "exchange", "string", True),
    (4, "exchange_timestamp", "timestamp", True),
    (5, "bid_price", "decimal(18, 6)", True),
    (6, "bid_quantity", "long", True),
    (7, "ask_price", "decimal(18, 6)", True),
    (8, "ask_quantity", "long", True),
    (9, "ingestion_timestamp", "timestamp", True),
    (10, "sequence_number", "long", False),
]
RETENTION = {
    "write.parquet.compression-codec": "zstd",
    "write.target-file-size-bytes": "268435456",
    "history.expire.max-snapshot-age-ms": "2592000000",
    "history.expire.min-snapshots-to-keep": "10",
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    names = ("CATALOG_PORT", "S3_PORT", "DATABASE_PORT")
    ports = dict(zip(names, map(str, free_ports(len(names))), strict=True))
    folder = tmp_path_factory.mktemp("infra")
    folder.chmod(0o755)
    for above in folder.parents:  # Postgres runs as another user where the tests run as root
        if above.owner() == folder.owner() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    one = lake(folder / "lake", ports)
    try:
        up(one)
        yield one
    finally:
        down(one)
    assert not one.folder.exists()


@pytest.fixture(scope="module")
def project(servers: Lake) -> Iterator[icemigrate.Project]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in servers.variables.items():
            patch.setenv(name, value)
        yield icemigrate.Project(PROJECT)


@pytest.fixture(scope="module")
def spark(project: icemigrate.Project, spark_jvm: SparkSession) -> SparkSession:
    """A session on the lake, whose migrations are applied."""
    assert spark_jvm is not None
    environment = choose_environment(open_project(PROJECT), None, dict(os.environ))
    session = start_spark(spark_settings(environment))
    session.conf.set("spark.sql.session.timeZone", "UTC")
    assert project.apply(project.plan(to="0003"), spark=session).applied == VERSIONS[:3]
    values = f"'early', 0, 'xnys', TIMESTAMP '{DAY}', 1.5, 10, 7, 'v', NULL, NULL, TIMESTAMP '{DAY}', 1"
    session.sql(f"INSERT INTO {CATALOG}.market_data.trades VALUES ({values})")
    assert project.apply(spark=session).applied == VERSIONS[3:]
    return session


def metadata(servers: Lake, table: str) -> dict[str, Any]:
    """The metadata of a table as the REST catalog returns it."""
    with urlopen(f"{servers.catalog}/v1/namespaces/market_data/tables/{table}", timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)["metadata"]
    return found


def current(items: list[dict[str, Any]], key: str, number: int) -> dict[str, Any]:
    return next(item for item in items if item[key] == number)


def fields_of(table: dict[str, Any]) -> list[tuple[int, str, str, bool]]:
    schema = current(table["schemas"], "schema-id", table["current-schema-id"])
    return [(f["id"], f["name"], f["type"], f["required"]) for f in schema["fields"]]


def partitions_of(table: dict[str, Any]) -> list[tuple[str, str, int]]:
    spec = current(table["partition-specs"], "spec-id", table["default-spec-id"])
    return [(f["name"], f["transform"], f["source-id"]) for f in spec["fields"]]


def order_of(table: dict[str, Any]) -> list[tuple[int, str]]:
    order = current(table["sort-orders"], "order-id", table["default-sort-order-id"])
    return [(f["source-id"], f["direction"]) for f in order["fields"]]


def test_starting_twice_changes_nothing(
    servers: Lake, spark: SparkSession, project: icemigrate.Project, capsys: pytest.CaptureFixture[str]
) -> None:
    up(servers)
    assert capsys.readouterr().out.count("runs already") == 3
    assert project.apply(spark=spark).applied == ()


@pytest.mark.usefixtures("spark")
def test_the_catalog_the_database_and_the_bucket_hold_both_tables(servers: Lake) -> None:
    with urlopen(f"{servers.catalog}/v1/namespaces/market_data/tables", timeout=30) as answer:
        listed = json.load(answer)["identifiers"]
    assert sorted(table["name"] for table in listed) == ["quotes", "trades"]

    query = "SELECT table_name, metadata_location FROM iceberg_tables WHERE table_namespace = 'market_data'"
    command = [find_programs() / "psql", "-XAtq", "-h", HOST, "-p", str(servers.database_port)]
    command += ["-U", DATABASE_USER, "-d", DATABASE, "-c", query]
    environment = {**os.environ, "PGPASSWORD": servers.password}
    rows = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    locations = dict(line.split("|") for line in rows.splitlines())
    assert locations.keys() == {"trades", "quotes"}
    assert locations["trades"].endswith(".gz.metadata.json"), "`write.metadata.compression-codec` is gzip"

    names = [info.path for info in _bucket(servers).get_file_info(_all_below(f"{BUCKET}/warehouse"))]
    for table, location in locations.items():
        folder = f"{BUCKET}/warehouse/market_data.db/{table}/metadata/"
        assert location.startswith(f"s3://{folder}")
        assert any(name.startswith(folder) for name in names)
        assert location.removeprefix("s3://") in names


def _bucket(servers: Lake) -> Any:
    from pyarrow.fs import S3FileSystem  # type: ignore[import-untyped]

    return S3FileSystem(
        access_key=servers.access_key,
        secret_key=servers.secret_key,
        endpoint_override=servers.s3,
        region="us-east-1",
        allow_bucket_creation=False,
    )


def _all_below(folder: str) -> Any:
    from pyarrow.fs import FileSelector

    return FileSelector(folder, recursive=True)


@pytest.mark.usefixtures("spark")
def test_the_tables_are_as_the_migrations_declare(servers: Lake, project: icemigrate.Project) -> None:
    by_day = ("exchange_date", "day", 4)
    trades, quotes = (metadata(servers, table) for table in ("trades", "quotes"))
    assert fields_of(trades) == TRADES
    assert partitions_of(trades) == [by_day, ("symbol_bucket", "bucket[16]", 1)]
    assert order_of(trades) == [(1, "asc"), (4, "asc"), (11, "desc")]
    assert trades["properties"].items() >= RETENTION.items()
    assert trades["properties"]["write.metadata.compression-codec"] == "gzip"
    assert fields_of(quotes) == QUOTES
    assert partitions_of(quotes) == [by_day]
    assert order_of(quotes) == [(4, "asc"), (10, "asc")]
    assert quotes["properties"].items() >= RETENTION.items()
    assert "write.metadata.compression-codec" not in quotes["properties"], "only trades declare it"
    assert not project.drift().drifted
    through_the_database = icemigrate.Project(PROJECT, environment="postgres")
    assert through_the_database.plan().is_empty
    assert [m.state for m in through_the_database.status().migrations] == ["applied"] * len(VERSIONS)


def test_all_migrations_go_back_and_forth_and_keep_the_rows(
    servers: Lake, spark: SparkSession, project: icemigrate.Project
) -> None:
    query = f"SELECT symbol, quantity FROM {CATALOG}.market_data.trades"
    undone = project.rollback(to="0", spark=spark).rolled_back
    assert undone == tuple(reversed(VERSIONS))
    with urlopen(f"{servers.catalog}/v1/namespaces/market_data/tables", timeout=30) as answer:
        assert json.load(answer)["identifiers"] == []
    assert project.apply(project.plan(redo="all"), spark=spark).applied == VERSIONS
    assert [tuple(row) for row in spark.sql(query).collect()] == [("early", 10)]
    assert fields_of(metadata(servers, "trades")) == TRADES
    assert fields_of(metadata(servers, "quotes")) == QUOTES


def test_rows_of_every_client_are_read_by_every_client(
    servers: Lake, spark: SparkSession, trino_server: Trino
) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.catalog import load_catalog

    values = f"company, 'xnys', TIMESTAMP '{DAY}', 1.5, 10, 'v', NULL, NULL, TIMESTAMP '{DAY}', 1"
    table = "market_data.trades"
    spark.sql(f"INSERT INTO {CATALOG}.{table} VALUES ('spark', {values.replace('company', '1')})")
    environment = choose_environment(open_project(PROJECT), None, dict(os.environ))
    with load_catalog(CATALOG, **pyiceberg_properties(environment)) as catalog:
        loaded = catalog.load_table(table)
        row = {name: None for _, name, _, _ in TRADES} | {"symbol": "pyiceberg", "company_id": 2}
        row |= {"exchange": "xnys", "venue": "v", "quantity": 10, "sequence_number": 1}
        arrow = spark.sql(f"SELECT * FROM {CATALOG}.{table}").toArrow().to_pylist()[0]
        row |= {name: arrow[name] for name in ("exchange_timestamp", "ingestion_timestamp", "price")}
        loaded.append(pa.Table.from_pylist([row], schema=loaded.schema().as_arrow()))
    duck = duckdb(servers)
    # DuckDB refuses to write to a sorted table, and to one with a target size of files, unless it is set.
    duck.execute("SET unsafe_iceberg_ignore_sort_order = true")
    duck.execute("SET ignore_target_file_size_for_partitioned_tables = true")
    duck.execute(f"INSERT INTO {CATALOG}.{table} VALUES ('duckdb', {values.replace('company', '3')})")
    properties = rest_properties(servers.catalog, servers.s3, servers.access_key, servers.secret_key)
    with trino_server.knowing(properties) as reader:
        reader.query(f"INSERT INTO {CATALOG}.{table} VALUES ('trino', {values.replace('company', '4')})")
        query = f"SELECT symbol, company_id, quantity FROM {CATALOG}.{table} ORDER BY company_id"
        by_trino = [tuple(found) for found in reader.query(query)]
    wanted = [("early", 0, 10), ("spark", 1, 10), ("pyiceberg", 2, 10), ("duckdb", 3, 10), ("trino", 4, 10)]
    assert by_trino == wanted
    spark.sql(f"REFRESH TABLE {CATALOG}.{table}")
    assert [tuple(found) for found in spark.sql(query).collect()] == wanted
    assert duckdb(servers).execute(query).fetchall() == wanted
    with load_catalog(CATALOG, **pyiceberg_properties(environment)) as catalog:
        scanned = catalog.load_table(table).scan().to_arrow().sort_by("company_id").to_pylist()
    assert [(found["symbol"], found["company_id"], found["quantity"]) for found in scanned] == wanted


def duckdb(servers: Lake) -> Any:
    """A connection to the REST catalog; nothing is downloaded."""
    import duckdb

    reader = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for name in ("avro", "httpfs", "iceberg"):
        package = importlib.import_module(f"duckdb_extension_{name}")
        (file,) = Path(package.__path__[0]).rglob(f"{name}.duckdb_extension")
        reader.execute(f"LOAD '{file}'")
    reader.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{servers.access_key}', SECRET '{servers.secret_key}',"
        f" ENDPOINT '{HOST}:{servers.s3_port}', URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')"
    )
    options = f"TYPE iceberg, ENDPOINT '{servers.catalog}', AUTHORIZATION_TYPE 'none'"
    reader.execute(f"ATTACH '' AS {CATALOG} ({options})")
    return reader
