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
    session = start_spark(with_every_driver(SparkSettings("of_the_jvm", conf)))
    _write_without_chmod(session)
    return session


# Hadoop starts a process, `chmod`, for each of the two files that it writes for every file; a suite writes
# some hundred thousand. The mode would be the one that the system gives a new file anyway.
_FILE_SYSTEM = """
public class WithoutChmod extends org.apache.hadoop.fs.LocalFileSystem {
    public WithoutChmod() {
        super(new org.apache.hadoop.fs.RawLocalFileSystem() {
            public void setPermission(
                org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission
            ) {
            }
        });
    }
}
"""


def _write_without_chmod(session: SparkSession) -> None:
    """Make the JVM write local files without a process for each.

    Hadoop keeps one file system for all local files of a JVM, of the class that its first user configured;
    Spark's own compiler of Java makes the class.
    """
    context = session.sparkContext
    jvm, hadoop = context._jvm, context._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_FILE_SYSTEM)
    file_system = compiler.getClassLoader().loadClass("WithoutChmod")
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    again = jvm.org.apache.hadoop.conf.Configuration(hadoop)
    again.setClassLoader(file_system.getClassLoader())
    again.set("fs.file.impl", "WithoutChmod")
    local = jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), again)
    assert local.getClass().getName() == "WithoutChmod"
    assert jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), hadoop).equals(local)


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
