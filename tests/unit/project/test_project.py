"""The project file: finding it, choosing an environment, secrets, and both clients' settings."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from datetime import timedelta
from pathlib import Path

import pytest

from icemigrate.diagnostics import FilePosition
from icemigrate.errors import Mistakes, UsageError
from icemigrate.files.read.migration_file import Retention, SnapshotRetention
from icemigrate.project import (
    CatalogDescription,
    Environment,
    Project,
    Secret,
    SparkConfig,
    StorageSettings,
    TableOverride,
    choose_environment,
    load_project,
    pyiceberg_properties,
    read_project,
    safe_name,
    spark_conf,
)
from icemigrate.project.namespace_mapping import catalog_settings
from tests.unit.files.examples import PROJECT, source

ROOT = Path("/projects/market")
ENVIRON = {
    "CATALOG_URI": "https://catalog",
    "CREDENTIAL": "id:hunter2",
    "TOKEN": "t0ken",
    "S3": "https://s3",
    "KEY": "k3y",
    "SECRET": "s3cret",
    "PASSWORD": "p@ss/word",
}


def project(text: str) -> Project:
    found = read_project(source(text, "icemigrate.yaml"), ROOT)
    assert found.project is not None, found.diagnostics
    return found.project


def chosen(text: str, name: str | None = None) -> Environment:
    return choose_environment(project(text), name, ENVIRON)


def at(text: str) -> FilePosition:
    """Where a text stands in the example."""
    before = PROJECT[: PROJECT.index(text)].split("\n")
    return FilePosition("icemigrate.yaml", len(before), len(before[-1]) + 1)


def only(catalog: str) -> Environment:
    return chosen(f"environments: {{prod: {{catalog: {catalog}}}}}")


def test_the_file_itself() -> None:
    found = project(PROJECT)
    assert (found.name, found.root, found.history) == ("market", ROOT, "ops.history")
    assert found.migrations_dir == ROOT / "steps"
    assert found.lists == {"tenants": ("acme", "7")}
    assert list(found.environments) == ["local", "prod", "warehouse"]
    assert (found.default_environment, found.file) == ("local", "icemigrate.yaml")


def test_an_environment() -> None:
    place = at('"market_data.*"')
    assert chosen(PROJECT, "prod") == Environment(
        "prod",
        CatalogDescription(
            "lake",
            "rest",
            "https://catalog",
            "s3://lake",
            credential=Secret("id:hunter2"),
            token=Secret("t0ken"),
            properties={"header.x-token": Secret("t0ken"), "scope": "catalog"},
        ),
        StorageSettings(
            "https://s3",
            True,
            "us-east-1",
            Secret("k3y"),
            Secret("s3cret"),
            Secret("t0ken"),
            {"s3.connect-timeout": "5"},
        ),
        SparkConfig("yarn", None, ROOT / "jars", {"spark.executor.instances": "4"}),
        {"market_data": "prod_market_data"},
        (
            TableOverride(
                "market_data.*",
                place,
                {"a": "1", "b": None},
                Retention(snapshots=SnapshotRetention(timedelta(days=7))),
                "s3://x",
            ),
        ),
        "history",
        "direct",
        timedelta(days=90),
    )


def test_without_a_file_everything_is_embedded(tmp_path: Path) -> None:
    root = tmp_path / "Market Data"
    root.mkdir()
    found = load_project(directory=root)
    assert found.diagnostics == ()
    assert found.project is not None
    assert (found.project.name, found.project.file) == ("market_data", None)
    assert found.project.migrations_dir == root / "migrations"
    assert choose_environment(found.project, None, {}) == Environment(
        "local",
        CatalogDescription(
            "local", "sqlite", str(root / ".icemigrate/catalog.db"), str(root / ".icemigrate/warehouse")
        ),
    )


@pytest.mark.parametrize(
    "text", ["", "# nothing yet\n", "environments: {local: {catalog: {type: sqlite}}}\n"]
)
def test_a_file_that_says_nothing_says_the_same(tmp_path: Path, text: str) -> None:
    (tmp_path / "icemigrate.yaml").write_text(text)
    found, without = load_project(directory=tmp_path).project, load_project(directory=tmp_path / "x").project
    assert found is not None
    assert without is not None
    assert choose_environment(found, None, {}).catalog.uri == str(tmp_path / ".icemigrate/catalog.db")
    assert choose_environment(found, "local", {}).name == choose_environment(without, "local", {}).name


def test_where_the_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "icemigrate.yml").write_text("project: short\n")
    monkeypatch.chdir(tmp_path)
    for found in (load_project(), load_project(tmp_path), load_project(Path("icemigrate.yml"))):
        assert found.project is not None
        assert (found.project.name, found.project.root) == ("short", tmp_path)
    (tmp_path / "icemigrate.yaml").write_text("project: long\n")
    found = load_project()
    assert found.project is not None
    assert found.project.name == "long"
    with pytest.raises(UsageError, match=r"no project file `gone\.yaml`"):
        load_project(Path("gone.yaml"))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "icemigrate.yaml").mkdir()
    found = load_project(directory=tmp_path)
    assert found.project is None
    assert [one.code for one in found.diagnostics] == ["unreadable-file"]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("Market Data (new)", "market_data_new"),
        ("2026", "p_2026"),
        ("…", "project"),
        ("/", "project"),
        ("a-b", "a_b"),
    ],
)
def test_a_name_from_a_folder(folder: str, name: str) -> None:
    assert safe_name(Path(folder)) == name


def test_the_default_environment() -> None:
    one, two = "{prod: {catalog: {type: sqlite}}", ", test: {catalog: {type: sqlite}}"
    assert project(f"environments: {one}}}").default_environment == "prod"
    several = project(f"environments: {one}{two}}}")
    assert several.default_environment is None
    with pytest.raises(UsageError, match="no environment is chosen") as raised:
        choose_environment(several, None, {})
    assert raised.value.hint == "choose one with `--env`: prod, test"


def test_an_environment_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="no environment `prd`") as raised:
        chosen(PROJECT, "prd")
    assert raised.value.hint == "did you mean `prod`?"
    with pytest.raises(UsageError) as raised:
        chosen(PROJECT, "x")
    assert raised.value.hint == "known environments: local, prod, warehouse"


def test_missing_variables_are_all_named_and_only_those_of_the_chosen_environment() -> None:
    found = project(PROJECT)
    assert choose_environment(found, "local", {}).catalog.type == "sqlite"
    with pytest.raises(Mistakes) as raised:
        choose_environment(found, "prod", {"TOKEN": "x", "S3": "x"})
    assert [(one.code, one.message, one.place) for one in raised.value.diagnostics] == [
        ("missing-variable", f"the environment variable `{name}` is not set", at(f'"${{{name}}}"'))
        for name in ("CATALOG_URI", "CREDENTIAL", "KEY", "SECRET")
    ]


@pytest.mark.parametrize(
    ("environ", "code"),
    [({"U": ""}, "empty-value"), ({"U": "host"}, "bad-format"), ({"U": "x://["}, "bad-format")],
)
def test_variables_that_do_not_fit(environ: dict[str, str], code: str) -> None:
    found = project('environments: {prod: {catalog: {type: sql, uri: "${U}"}}}')
    with pytest.raises(Mistakes) as raised:
        choose_environment(found, "prod", environ)
    assert [one.code for one in raised.value.diagnostics] == [code]


def test_a_variable_may_yet_become_a_url() -> None:
    found = project('environments: {prod: {catalog: {type: sql, uri: "postgresql://[${A}/x"}}}')
    with pytest.raises(Mistakes):
        choose_environment(found, "prod", {"A": "x"})


def test_a_dollar_can_be_meant() -> None:
    assert only('{type: glue, properties: {a: "$${X} $5 ${S3}"}}').catalog.properties == {
        "a": "${X} $5 https://s3"
    }


def test_a_variable_is_put_in_once() -> None:
    found = project('environments: {prod: {catalog: {type: glue, properties: {a: "${A}"}}}}')
    assert choose_environment(found, "prod", {"A": "${B}"}).catalog.properties == {"a": "${B}"}


def test_secrets_do_not_show() -> None:
    text = "environments: {prod: {catalog: {type: sql, uri: 'postgresql://me:hunter2@db/x'}}}"
    environment, secret = chosen(text), Secret("hunter2")
    shown = [
        repr(environment),
        str(environment),
        str(project(text)),
        f"{secret} {secret!r} {secret:>9}",
        str(secret),
    ]
    shown += [repr(dataclasses.asdict(environment)), repr(copy.copy(secret)), repr(chosen(PROJECT, "prod"))]
    for text in shown:
        assert not any(word in text for word in ("hunter2", "t0ken", "k3y", "s3cret"))
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        json.dumps(secret)
    assert copy.deepcopy(secret) == secret == Secret("hunter2") != Secret("x")
    assert len({secret, Secret("hunter2")}) == 1
    assert secret.reveal() == "hunter2"


def test_settings_of_the_embedded_catalog() -> None:
    environment = only("{type: sqlite}")
    assert spark_conf(environment) == {
        "spark.sql.catalog.prod": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.prod.type": "jdbc",
        "spark.sql.catalog.prod.uri": f"jdbc:sqlite:{ROOT}/.icemigrate/catalog.db?busy_timeout=60000",
        "spark.sql.catalog.prod.jdbc.schema-version": "V1",
        "spark.sql.catalog.prod.warehouse": f"file://{ROOT}/.icemigrate/warehouse",
    }
    assert pyiceberg_properties(environment) == {
        "type": "sql",
        "uri": f"sqlite:///{ROOT}/.icemigrate/catalog.db?timeout=60",
        "warehouse": f"file://{ROOT}/.icemigrate/warehouse",
    }


@pytest.mark.parametrize(
    ("uri", "file"),
    [
        ("a/b.db", f"{ROOT}/a/b.db"),
        ("/c.db", "/c.db"),
        ("sqlite:////c.db", "/c.db"),
        ("jdbc:sqlite:c.db", f"{ROOT}/c.db"),
    ],
)
def test_the_file_of_a_sqlite_catalog(uri: str, file: str) -> None:
    assert only(f'{{type: sqlite, uri: "{uri}"}}').catalog.uri == file


@pytest.mark.parametrize("warehouse", ["s3://lake", "file:/data", "gs://x/y"])
def test_a_warehouse_that_is_no_folder_stays(warehouse: str) -> None:
    assert only(f'{{type: sqlite, warehouse: "{warehouse}"}}').catalog.warehouse == warehouse


@pytest.mark.parametrize(
    "catalog",
    [
        "{type: jdbc, name: lake, uri: 'jdbc:postgresql://db:5432/x?ssl=on', user: me,"
        " password: '${PASSWORD}', warehouse: /d}",
        "{type: sql, name: lake, uri: 'postgresql://me:p%40ss%2Fword@db:5432/x?ssl=on', warehouse: /d}",
        "{type: sql, name: lake, warehouse: /d,"
        " uri: 'jdbc:postgresql://db:5432/x?ssl=on&user=me&password=p%40ss%2Fword'}",
    ],
)
def test_settings_of_a_database(catalog: str) -> None:
    environment = only(catalog)
    assert spark_conf(environment) == {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.uri": "jdbc:postgresql://db:5432/x?ssl=on",
        "spark.sql.catalog.lake.jdbc.schema-version": "V1",
        "spark.sql.catalog.lake.jdbc.user": "me",
        "spark.sql.catalog.lake.jdbc.password": "p@ss/word",
        "spark.sql.catalog.lake.jdbc.connectTimeout": "30",
        "spark.sql.catalog.lake.jdbc.loginTimeout": "30",
        "spark.sql.catalog.lake.jdbc.socketTimeout": "30",
        "spark.sql.catalog.lake.jdbc.tcpKeepAlive": "true",
        "spark.sql.catalog.lake.warehouse": "file:///d",
    }
    assert pyiceberg_properties(environment) == {
        "type": "sql",
        "uri": "postgresql://me:p%40ss%2Fword@db:5432/x?ssl=on",
        "warehouse": "file:///d",
    }


def test_a_database_driver_is_for_python_alone() -> None:
    environment = only("{type: sql, uri: 'postgresql+psycopg2://db/x'}")
    assert spark_conf(environment)["spark.sql.catalog.prod.uri"] == "jdbc:postgresql://db/x"
    assert pyiceberg_properties(environment)["uri"] == "postgresql+psycopg2://db/x"
    assert (
        pyiceberg_properties(only("{type: sql, uri: 'postgresql://db/x', user: me}"))["uri"]
        == "postgresql://me@db/x"
    )


REST_TIMEOUTS = {"rest.client.connection-timeout-ms": "30000", "rest.client.socket-timeout-ms": "30000"}
PATIENCE = {
    "s3.retry.num-retries": "3",
    "s3.retry.min-wait-ms": "500",
    "s3.retry.max-wait-ms": "4000",
    "http-client.apache.connection-timeout-ms": "3000",
    "http-client.apache.socket-timeout-ms": "10000",
}


def test_settings_of_a_rest_catalog() -> None:
    environment = chosen(PROJECT, "prod")
    lake = {
        "type": "rest",
        "uri": "https://catalog",
        "warehouse": "s3://lake",
        "credential": "id:hunter2",
        "token": "t0ken",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        **PATIENCE,
        **REST_TIMEOUTS,
        "s3.endpoint": "https://s3",
        "s3.path-style-access": "true",
        "client.region": "us-east-1",
        "s3.access-key-id": "k3y",
        "s3.secret-access-key": "s3cret",
        "s3.session-token": "t0ken",
        "s3.connect-timeout": "5",
        "header.x-token": "t0ken",
        "scope": "catalog",
    }
    assert spark_conf(environment) == {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        **{f"spark.sql.catalog.lake.{key}": value for key, value in lake.items()},
        "spark.executor.instances": "4",
    }
    spark_only = {"io-impl", "s3.path-style-access", "client.region", *PATIENCE, *REST_TIMEOUTS}
    assert pyiceberg_properties(environment) == {
        **{key: value for key, value in lake.items() if key not in spark_only},
        "s3.region": "us-east-1",
        "s3.force-virtual-addressing": "false",
    }


@pytest.mark.parametrize(
    ("catalog", "expected"),
    [
        ("{type: rest, uri: 'http://c', timeout: 5s}", {"rest.client.socket-timeout-ms": "5000"}),
        (
            "{type: hive, uri: 'thrift://m:9083', timeout: 2m}",
            {"hadoop.hive.metastore.client.socket.timeout": "120s"},
        ),
        ("{type: glue, timeout: 5s}", {"http-client.apache.socket-timeout-ms": "5000"}),
        ("{type: sql, uri: 'mysql://db/x', timeout: 5s}", {"jdbc.socketTimeout": "5000"}),
    ],
)
def test_both_clients_are_given_the_timeout(catalog: str, expected: dict[str, str]) -> None:
    environment = only(catalog)
    conf = spark_conf(environment)
    assert {key: conf[f"spark.sql.catalog.prod.{key}"] for key in expected} == expected
    assert catalog_settings(environment).timeout_s == environment.catalog.timeout_s > 0


def test_properties_of_the_catalog_go_before_the_timeout() -> None:
    properties = "{rest.client.socket-timeout-ms: 7}"
    environment = only(f"{{type: rest, uri: 'http://c', timeout: 5s, properties: {properties}}}")
    assert spark_conf(environment)["spark.sql.catalog.prod.rest.client.socket-timeout-ms"] == "7"


def test_settings_of_hive_and_glue() -> None:
    hive = only("{type: hive, uri: 'thrift://m:9083', warehouse: /d}")
    assert pyiceberg_properties(hive) == {"type": "hive", "uri": "thrift://m:9083", "warehouse": "file:///d"}
    assert spark_conf(hive)["spark.sql.catalog.prod.type"] == "hive"
    glue = chosen(
        "environments: {prod: {catalog: {type: glue, warehouse: 's3://x'}, storage: {region: eu-west-1}}}"
    )
    assert pyiceberg_properties(glue) == {
        "type": "glue",
        "warehouse": "s3://x",
        "s3.region": "eu-west-1",
        "glue.region": "eu-west-1",
    }
    assert spark_conf(glue)["spark.sql.catalog.prod.io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"


def test_how_long_s3_is_waited_for_can_be_said_otherwise() -> None:
    chosen_properties = "{s3.retry.num-retries: '9'}"
    text = (
        "environments: {prod: {catalog: {type: glue, warehouse: 's3://x'}, "
        f"storage: {{properties: {chosen_properties}}}}}}}"
    )
    conf = spark_conf(chosen(text))
    assert conf["spark.sql.catalog.prod.s3.retry.num-retries"] == "9"
    assert conf["spark.sql.catalog.prod.s3.retry.max-wait-ms"] == "4000"


def test_what_is_written_for_spark_wins() -> None:
    text = "environments: {prod: {catalog: {type: sqlite}, spark: {conf: {spark.sql.catalog.prod.type: x}}}}"
    assert spark_conf(chosen(text))["spark.sql.catalog.prod.type"] == "x"


def test_an_environment_of_a_remote_spark() -> None:
    assert chosen(PROJECT, "warehouse").spark == SparkConfig(remote="sc://spark:15002")
