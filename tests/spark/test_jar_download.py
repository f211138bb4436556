"""Jars that Spark fetches: into an empty cache, a cache with some of them, and without a network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from icemigrate.spark.jars import jar_name, locate_jars
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.versions import CURRENT, SQLITE_JDBC

_START = """
import sys
from pathlib import Path
from icemigrate.errors import EngineError
from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
root = Path(sys.argv[1])
conf = dict(pair.split("=", 1) for pair in sys.argv[2:])
try:
    spark = start_spark(SparkSettings("lake", sqlite_catalog_conf(root / "c.db", root / "w"), conf=conf))
    spark.sql("CREATE NAMESPACE lake.n")
    print(spark.sql("SHOW NAMESPACES IN lake").count())
except EngineError as error:
    print(error.message)
"""
_SETTINGS = """\
<ivysettings><settings defaultResolver="here"/><resolvers><filesystem name="here">
<artifact pattern="{folder}/[organisation]_[artifact]-[revision].[ext]"/>
</filesystem></resolvers></ivysettings>
"""
_FETCHES = "Downloading iceberg-spark-runtime-4.1_2.13, sqlite-jdbc (cached for later runs) …\n"


@pytest.fixture
def repository(tmp_path: Path, spark_jvm: object) -> Path:
    """A repository on disk, with the jars that the run's own Spark has."""
    assert spark_jvm is not None
    folder = tmp_path / "repository"
    folder.mkdir()
    settings = SparkSettings("lake", sqlite_catalog_conf(tmp_path / "c.db", tmp_path / "w"))
    runtime, driver = locate_jars(settings, CURRENT).files
    (folder / jar_name(CURRENT.iceberg_runtime)).symlink_to(runtime)
    (folder / jar_name(SQLITE_JDBC)).symlink_to(driver)
    (tmp_path / "ivysettings.xml").write_text(_SETTINGS.format(folder=folder), encoding="utf-8")
    return folder


def start(folder: Path, *conf: str) -> subprocess.Popen[str]:
    """A process with a catalog of its own, whose cache of jars is `cache` beside its folder."""
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", _START, str(folder), f"spark.jars.ivy={folder.parent / 'cache'}", *conf],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_all_jars_are_fetched_once_and_loaded_by_one_loader(tmp_path: Path, repository: Path) -> None:
    mirror = f"spark.jars.ivySettings={tmp_path}/ivysettings.xml"
    # With a jar of the user, Spark loads all jars.
    own = f"spark.jars={repository / jar_name(SQLITE_JDBC)}"
    at_once = [start(tmp_path / "a", mirror), start(tmp_path / "b", mirror, own)]
    outputs = [process.communicate(timeout=300) for process in at_once]
    assert [output for output, _ in outputs] == ["1\n", "1\n"]
    # A process that looks later finds what the other one has fetched by then.
    runtime, driver = (
        _FETCHES.replace(", sqlite-jdbc", ""),
        "Downloading sqlite-jdbc (cached for later runs) …\n",
    )
    assert outputs[0][1] in (_FETCHES, driver)
    assert outputs[1][1] in (runtime, "")
    cache = tmp_path / "cache" / "jars"
    names = {path.name for path in repository.iterdir()}
    assert {path.name for path in cache.iterdir()} == names | {".fetch.lock"}

    # A part of the jars: what is there and what is fetched must get the same class loader.
    (cache / jar_name(SQLITE_JDBC)).unlink()
    again = start(tmp_path / "c", mirror)
    assert again.communicate(timeout=300) == ("1\n", driver)
    assert {path.name for path in cache.iterdir()} == names | {".fetch.lock"}


def test_without_a_network_one_error_names_the_jars_and_the_places(tmp_path: Path) -> None:
    refused = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9"
    output, errors = start(tmp_path / "a", f"spark.driver.extraJavaOptions={refused}").communicate(
        timeout=300
    )
    lines = output.splitlines()
    assert lines[:2] == [
        f"jars are missing and could not be fetched: {CURRENT.iceberg_runtime}, {SQLITE_JDBC}",
        f"  not in {tmp_path}/cache/jars",
    ]
    assert "  not in repository `local-m2-cache`" in lines
    assert lines[-1].startswith("  Connection refused")
    assert errors == _FETCHES
