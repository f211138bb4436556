"""The JVM that Spark runs in: launched, kept quiet, and ended.

It is launched by hand (:func:`pyspark.java_gateway.launch_gateway`) for three reasons: its output can be
kept away from the user's terminal and read when it fails, the Java that was found can be given to it, and the
catalog's secrets go to it over the socket instead of standing in its command line for all to see.
"""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from icemigrate.debugging import is_debugging
from icemigrate.engine.java import Java
from icemigrate.programs import search_path

# What the JVM must know before it runs, so that it has to stand in its command line.
_LAUNCH_KEYS = ("spark.master", "spark.driver.", "spark.jars", "spark.submit.", "spark.local.dir")


def launch(conf: Mapping[str, str], found: Java, is_local: bool, output: IO[bytes] | None) -> Any:
    """Launch it; Py4J's gateway to it.

    :param conf: all of Spark's settings, of which it is given those that it must know before it runs.
    :param output: see :func:`output_of_jvm`.
    """
    import pyspark
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    needed = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        if key.startswith(_LAUNCH_KEYS):
            needed.set(key, value)
    # Standard output belongs to icemigrate alone: what the JVM prints there goes to standard error at most.
    streams = {"stdout": output or 2, "stderr": output or 2}
    # PySpark takes the folder above the working directory for Spark's own where it holds `bin/spark-submit`.
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    ours = {
        "JAVA_HOME": str(found.home),
        "SPARK_LOCAL_IP": "127.0.0.1" if is_local else None,
        "SPARK_HOME": home,
        # Spark and Hadoop start `bash`, `chmod` and others by their names.
        "PATH": search_path(),
    }
    with _environment(**ours):
        try:
            return launch_gateway(conf=needed, popen_kwargs=streams)  # type: ignore[no-untyped-call]
        except BaseException as stopped:
            _end_awaited(stopped)
            raise


def _end_awaited(stopped: BaseException) -> None:
    """End the JVM that PySpark was waiting for.

    It takes the folder away in which the JVM says where it listens, and the JVM, which finds none, would wait
    for ever.  Nobody else is given the process: it is known to the call alone that was stopped.
    """
    for frame, _ in traceback.walk_tb(stopped.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen):
            process.terminate()


@contextmanager
def _environment(**values: str | None) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in values}
    os.environ.update({key: value for key, value in values.items() if value is not None})
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def end(seconds: float = 30) -> None:
    """End the JVM, if there is one: PySpark would keep it, and its class path, for the next context."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()
        process.wait(timeout=seconds)
    SparkContext._gateway = None
    SparkContext._jvm = None


def forget() -> None:
    """End the JVM, however it is, and have PySpark know of none."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with suppress(Exception):
        end()
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


@contextmanager
def output_of_jvm() -> Iterator[IO[bytes] | None]:
    """Where the JVM writes: a file without a name, or the terminal (``None``) while debugging."""
    if is_debugging():
        yield None
    else:
        # The JVM goes on writing to it after it is closed here; it is gone when the JVM is.
        with tempfile.TemporaryFile() as output:
            yield output


def text_of(output: IO[bytes] | None) -> str:
    """What it has written there so far."""
    if output is None:
        return ""
    output.seek(0)
    return output.read().decode("utf-8", errors="replace")


def hush() -> None:
    """Keep PySpark from logging what is told as a fault.

    PySpark 4 logs every failed statement to standard error as well, with the JVM's whole stack trace; and
    Py4J every call that Ctrl-C or the JVM's end cut short, with Python's, in part by the root logger.
    """
    if not is_debugging():
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
