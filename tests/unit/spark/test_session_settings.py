from __future__ import annotations

import logging
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import py4j.java_gateway
import pytest

from icemigrate.errors import EngineError, MissingExtra
from icemigrate.spark import gateway
from icemigrate.spark.jars import JarLocations
from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import SparkSettings, changed_settings, spark_conf, sqlite_catalog_conf

LOCAL = SparkSettings("lake", {"type": "rest", "uri": "https://catalog"})
JARS = JarLocations(files=(Path("/j/a.jar"), Path("/j/b.jar")))


def test_without_pyspark_the_line_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtra) as caught:
        start_spark(LOCAL)
    assert caught.value.hint == "in a clone of icemigrate: pip install '.[spark]'"


def test_what_py4j_logs_of_a_call_cut_short_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    def log(path: str) -> None:
        exec(compile("import logging; logging.error('while sending command')", path, "exec"), {})

    gateway.silence_logging()
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
    conf = spark_conf(LOCAL, JarLocations())
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
def test_only_in_local_mode_spark_listens_here_alone(master: str, local: bool) -> None:
    conf = spark_conf(SparkSettings("lake", {}, master=master), JARS)
    assert ("spark.driver.bindAddress" in conf) is local


@pytest.mark.parametrize("on_class_path", [True, False])
@pytest.mark.parametrize("by_spark", [True, False])
def test_jars_are_given_to_the_loaders_of_their_location(on_class_path: bool, by_spark: bool) -> None:
    located = JarLocations(JARS.files, (), on_class_path, by_spark)
    conf = spark_conf(SparkSettings("lake", {}, conf={"spark.jars": "/own.jar"}), located)
    assert conf.get("spark.driver.extraClassPath") == ("/j/a.jar:/j/b.jar" if on_class_path else None)
    assert conf["spark.jars"] == ("/j/a.jar,/j/b.jar,/own.jar" if by_spark else "/own.jar")


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


@dataclass
class RecordedConf:
    """A session's settings, which record each change of one."""

    values: dict[str, str]
    calls: list[str] = field(default_factory=list)

    def get(self, key: str, default: str | None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.calls.append(f"{key}={value}")
        self.values[key] = value

    def unset(self, key: str) -> None:
        self.calls.append(f"{key} unset")
        del self.values[key]


@pytest.mark.parametrize(
    ("error", "after"),
    [
        (None, {"a": "1"}),
        (EngineError("no such column"), {"a": "1"}),
        # A call after Ctrl-C would wait for the answer of the call that was interrupted.
        (KeyboardInterrupt(), {"a": "2", "b": "3"}),
    ],
)
def test_a_session_gets_its_settings_back_but_after_ctrl_c_no_call_is_made(
    error: BaseException | None, after: dict[str, str]
) -> None:
    conf = RecordedConf({"a": "1"})
    session: Any = SimpleNamespace(conf=conf)
    with nullcontext() if error is None else pytest.raises(type(error)):  # noqa: SIM117
        with changed_settings(session, {"a": "2", "b": "3"}):
            if error is not None:
                raise error
    assert conf.values == after
    assert conf.calls == ["a=2", "b=3"] + (["a=1", "b unset"] if after == {"a": "1"} else [])


def test_an_error_is_not_replaced_where_the_settings_cannot_be_set_back() -> None:
    conf = RecordedConf({})
    session: Any = SimpleNamespace(conf=conf)

    def fail() -> None:
        with changed_settings(session, {"a": "1"}):
            conf.values.clear()  # so that `unset` fails, as after the end of the JVM
            raise EngineError("the statement failed")

    with pytest.raises(EngineError, match="the statement failed"):
        fail()
