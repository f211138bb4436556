"""Starts Spark quickly and quietly, and leaves no files in the user's folder."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icemigrate.errors import EngineError, MissingExtra, extra_hint
from icemigrate.hidden_characters import escaped_lines
from icemigrate.redaction import redact_secrets
from icemigrate.spark import class_archive, find_java, gateway
from icemigrate.spark.gateway import DeferredSignals, defer_signals
from icemigrate.spark.jar_download import fetch_error, fetch_missing
from icemigrate.spark.jars import JarLocations, locate_jars, spark_core_jars
from icemigrate.spark.java_errors import start_failure, to_engine_error
from icemigrate.spark.session_settings import (
    EXTENSIONS,
    QUICK_JVM,
    SparkSettings,
    catalog_conf,
    spark_conf,
    with_jvm_option,
)
from icemigrate.system.process import DEBUG_VARIABLE
from icemigrate.versions import CURRENT, spark_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_restart: Callable[[], None] | None = None
"""What :func:`restart_for_other_settings` calls."""
_started_with: SparkSettings | None = None
"""The settings that the running Spark was started with."""


@contextmanager
def restart_for_other_settings(on_restart: Callable[[], None]) -> Iterator[None]:
    """A block in which a Spark that was started with other settings is stopped, and a new one is started.

    Elsewhere the running one gets another session, whose catalog alone has the new settings.

    :param on_restart: called before the running one is stopped.
    """
    global _restart
    before, _restart = _restart, on_restart
    try:
        yield
    finally:
        _restart = before


def start_spark(settings: SparkSettings) -> SparkSession:
    """Start Spark, or open another session in the Spark that runs in this process already.

    :raises MissingExtra: PySpark is not installed.
    :raises EngineError: PySpark's version has no Iceberg, no Java will do, jars are missing, or Spark failed.
    """
    try:
        import pyspark
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtra("PySpark is not installed", extra_hint("spark")) from error

    running = SparkContext._active_spark_context
    if running is not None and _restart is not None and _started_with not in (None, settings):
        _restart()
        with suppress(Exception):  # its JVM may have ended
            running.stop()
        gateway.discard_jvm()
        running = None
    if running is not None:
        return _another_session(SparkSession(running), settings)
    # A JVM whose context was stopped has the class path of that context.
    gateway.stop_jvm()
    release = spark_release(pyspark.__version__)
    found = find_java.find_java(release.java)
    wrong = find_java.wrong_home(release.java)
    if wrong is not None:
        sys.stderr.write(escaped_lines(redact_secrets(f"{wrong}; using {found}\n")))
    located = locate_jars(settings, release)
    if located.missing:
        located = fetch_missing(settings, release, located, found)
    conf = spark_conf(settings, located)
    archive = _archive(settings, located, found, pyspark.__version__)
    if archive is not None and archive.is_intact():
        try:
            return _start(with_jvm_option(conf, archive.options()), settings, found)
        except EngineError:
            archive.discard()  # if the archive was not the cause, the next start reports it
    session = _start(conf, settings, found)
    if archive is not None:
        atexit.register(class_archive.make_later, archive, found.home, located)
    return session


def _start(
    conf: Mapping[str, str], settings: SparkSettings, found: find_java.JavaInstallation
) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    global _started_with
    gateway.silence_logging()
    with gateway.output_of_jvm() as output:
        try:
            jvm = gateway.launch_jvm(conf, found, settings.is_local, output)
            with defer_signals(jvm.proc.kill if jvm.proc else lambda: None) as held:
                session = _session(SparkSession, conf, jvm, held)
            _started_with = settings
            return session
        except (Py4JError, PySparkException, OSError) as error:
            text = gateway.text_of(output)
            cause = start_failure(text) or to_engine_error(error).message
            gateway.stop_jvm()
            failed = EngineError(f"Spark failed to start: {cause}", _start_hint(found))
            raise (fetch_error(text) or failed) from error
        except BaseException:
            gateway.discard_jvm()  # an interrupted Spark cannot be reused by the next start
            raise


def _archive(
    settings: SparkSettings, located: JarLocations, found: find_java.JavaInstallation, spark: str
) -> class_archive.ClassArchive | None:
    """The class-data archive of this start; ``None`` where there can be none.

    The user's own JVM options may require another archive, so they exclude it.
    """
    own_options = "spark.driver.extraJavaOptions" in settings.conf
    if not settings.is_local or own_options or not class_archive.is_wanted():
        return None
    on_class_path = located.files if located.on_class_path else ()
    # Java ignores an archive of jars in another folder, such as that of another virtual environment.
    jars = (*on_class_path, *spark_core_jars(os.environ))
    return class_archive.archive_for(found.home, found.version, spark, jars, QUICK_JVM)


def start_to_archive(settings: SparkSettings, located: JarLocations, path: Path) -> SparkSession:
    """Start Spark in a JVM that writes the classes it has loaded to ``path`` when it ends."""
    found = find_java.find_java(CURRENT.java)
    conf = with_jvm_option(spark_conf(settings, located), f"-XX:ArchiveClassesAtExit={path}")
    return _start(conf, settings, found)


def stop_spark(session: SparkSession, seconds: float = 30) -> None:
    """Stop Spark and its JVM, so that the next :func:`start_spark` may choose its own class path.

    :param seconds: how long to wait for the JVM's end.
    """
    session.stop()
    gateway.stop_jvm(seconds)


def _another_session(session: SparkSession, settings: SparkSettings) -> SparkSession:
    if EXTENSIONS not in (session.conf.get("spark.sql.extensions", "") or ""):
        raise EngineError(
            "Spark already runs in this process, without Iceberg's SQL extensions",
            f"start it with spark.sql.extensions={EXTENSIONS}, or stop it first",
        )
    another = session.newSession()
    for key, value in catalog_conf(settings).items():
        another.conf.set(key, value)
    return another


def _session(
    session_class: type[SparkSession], conf: Mapping[str, str], jvm: Any, held: DeferredSignals
) -> SparkSession:
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized(gateway=jvm)
    whole = SparkConf()
    for key, value in conf.items():
        whole.set(key, value)
    context = SparkContext(conf=whole)
    held.hold()  # PySpark has set its own handler
    gateway.cache_lookups(context._jvm)
    return session_class(context)


def _start_hint(found: find_java.JavaInstallation) -> str:
    hint = f"set {DEBUG_VARIABLE}=1 to see Spark's output"
    wrong = find_java.wrong_home((found.major,))
    return hint if wrong is None else f"{hint}; {wrong}, so Spark was started with {found}"


def use_own_python(spark: SparkSession) -> None:
    """Let Spark's Python processes on this machine be of this Python, which has icemigrate.

    Those of a cluster are of ``spark.pyspark.python``, which Spark itself reads only in `spark-submit`.
    """
    context = spark.sparkContext
    if configured := context.getConf().get("spark.pyspark.python"):
        context.pythonExec = configured
    elif str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
