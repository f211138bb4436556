"""The settings of the one Spark of a test run, which every kind of catalog can be used in."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.spark.session import start_spark, stop_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.versions import CURRENT, POSTGRES_JDBC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Hundreds of sessions live in one JVM, more than any command opens.
_HEAP = "3g"


def start_jvm(root: Path) -> SparkSession:
    """Start Spark in a JVM of its own; ``start`` opens further sessions in it.

    :param root: the folder of the catalog that it starts with.
    """
    conf = sqlite_catalog_conf(root / "catalog.db", root / "warehouse")
    return start_spark(with_every_driver(SparkSettings("of_the_jvm", conf)))


def end_jvm() -> None:
    """End the Spark that runs in this process, if any does, and its JVM."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    running = SparkContext._active_spark_context
    if running is not None:
        stop_spark(SparkSession(running))


def with_every_driver(settings: SparkSettings) -> SparkSettings:
    """The settings, with the class path of all catalogs that tests use.

    A JVM's class path is fixed when it starts, and sessions that are opened in it later bring catalogs of
    other kinds.
    """
    packages = (*settings.packages, POSTGRES_JDBC, CURRENT.aws_bundle)
    conf = {**settings.conf, "spark.driver.memory": _HEAP}
    return dataclasses.replace(settings, conf=conf, packages=packages)
