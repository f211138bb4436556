from __future__ import annotations

import logging
import sys
from pathlib import Path

import py4j.java_gateway
import pytest

from icemigrate.engine import gateway
from icemigrate.engine.jars import Jars
from icemigrate.engine.session import start
from icemigrate.engine.settings import SparkSettings, spark_conf, sqlite_catalog_conf
from icemigrate.errors import MissingExtra

LOCAL = SparkSettings("lake", {"type": "rest", "uri": "https://catalog"})
JARS = Jars(files=(Path("/j/a.jar"), Path("/j/b.jar")), packages=("g:a:1",))


def test_without_pyspark_the_line_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtra) as caught:
        start(LOCAL)
    assert caught.value.hint == "in a clone of icemigrate: pip install '.[spark]'"


def test_what_py4j_logs_of_a_call_cut_short_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    def log(path: str) -> None:
        exec(compile("import logging; logging.error('while sending command')", path, "exec"), {})

    gateway.hush()
    log(py4j.java_gateway.__file__)
    logging.getLogger("py4j.clientserver").error("there was an exception while executing")
    assert caplog.messages == []
    log(__file__)
    assert caplog.messages == ["while sending command"]


def test_settings_do_not_show_secrets() -> None:
    shown = repr(
        SparkSettings("lake", {"credential": "id:hush"}, conf={"spark.hadoop.fs.s3a.secret.key": "hush"})
    )
    assert "lake" in shown
    assert "hush" not in shown


def test_a_catalog_is_iceberg_s_own_and_keeps_no_tables_in_memory() -> None:
    conf = spark_conf(LOCAL, Jars())
    catalog = {key: value for key, value in conf.items() if key.startswith("spark.sql.catalog.lake")}
    assert catalog == {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.cache-enabled": "false",
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.uri": "https://catalog",
    }


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[2]", True),
        ("local[*]", True),
        ("local-cluster[1,1,512]", False),
        ("yarn", False),
    ],
)
def test_only_in_local_mode_jars_are_a_class_path(master: str, local: bool) -> None:
    conf = spark_conf(SparkSettings("lake", {}, master=master), JARS)
    assert conf.get("spark.driver.extraClassPath") == ("/j/a.jar:/j/b.jar" if local else None)
    assert conf.get("spark.jars") == (None if local else "/j/a.jar,/j/b.jar")
    assert conf["spark.jars.packages"] == "g:a:1"
    assert ("spark.driver.bindAddress" in conf) is local


def test_the_user_s_settings_win_and_lists_are_added_to() -> None:
    theirs = {
        "spark.sql.extensions": "their.Extensions",
        "spark.driver.extraClassPath": "/their.jar",
        "spark.driver.extraJavaOptions": "-Dx=y",
        "spark.sql.shuffle.partitions": "200",
        "spark.sql.catalog.lake.cache-enabled": "true",
    }
    conf = spark_conf(SparkSettings("lake", {}, conf=theirs), JARS)
    ours = spark_conf(SparkSettings("lake", {}), JARS)
    assert conf["spark.sql.shuffle.partitions"] == "200"
    assert conf["spark.sql.catalog.lake.cache-enabled"] == "true"
    assert conf["spark.sql.extensions"] == ours["spark.sql.extensions"] + ",their.Extensions"
    assert conf["spark.driver.extraClassPath"] == "/j/a.jar:/j/b.jar:/their.jar"
    assert conf["spark.driver.extraJavaOptions"] == ours["spark.driver.extraJavaOptions"] + " -Dx=y"


def test_the_embedded_default_waits_for_a_locked_file(tmp_path: Path) -> None:
    conf = sqlite_catalog_conf(tmp_path / "c.db", tmp_path / "wh")
    assert conf == {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{tmp_path}/c.db?busy_timeout=60000",
        "jdbc.schema-version": "V1",
        "warehouse": f"{tmp_path}/wh",
    }
