"""Start Spark: quickly, quietly, and with nothing left in the user's folder."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icemigrate.debugging import DEBUG_VARIABLE
from icemigrate.engine import archive, gateway, jars, java
from icemigrate.engine.explain import explain, start_failure
from icemigrate.engine.interrupts import Held, held_back
from icemigrate.engine.settings import (
    EXTENSIONS,
    QUICK_JVM,
    SparkSettings,
    catalog_conf,
    spark_conf,
    with_jvm_option,
)
from icemigrate.errors import EngineError, MissingExtra, extra_hint
from icemigrate.hidden_characters import escaped_lines
from icemigrate.redaction import redact
from icemigrate.versions import CURRENT, SparkRelease, spark_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start(settings: SparkSettings) -> SparkSession:
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
    if running is not None:
        return _another_session(SparkSession(running), settings)
    # A JVM whose context was stopped has the class path of that context.
    gateway.end()
    release = spark_release(pyspark.__version__)
    found = java.find(release.java)
    wrong = java.wrong_home(release.java)
    if wrong is not None:
        sys.stderr.write(escaped_lines(redact(f"{wrong}; Spark runs on {found}\n")))
    located = _located(settings, release)
    conf = spark_conf(settings, located)
    kept = _archive(settings, located, found, pyspark.__version__)
    if kept is not None and kept.is_sound():
        try:
            return _start(with_jvm_option(conf, kept.options()), settings, found, located)
        except EngineError:
            kept.discard()  # if it was not to blame, the next try says what is
    session = _start(conf, settings, found, located)
    if kept is not None:
        atexit.register(archive.make_later, kept, found.home, located.files)
    return session


def _located(settings: SparkSettings, release: SparkRelease) -> jars.Jars:
    located = jars.locate(
        required=jars.needed(release, settings.catalog_conf),
        extra=settings.packages,
        jars_dir=settings.jars_dir,
        ivy_dir=settings.ivy_dir,
    )
    if located.packages:
        names = ", ".join(package.split(":")[1] for package in located.packages)
        sys.stderr.write(escaped_lines(redact(f"Spark fetches {names} (once, into its cache) …\n")))
    return located


def _start(
    conf: Mapping[str, str], settings: SparkSettings, found: java.Java, located: jars.Jars
) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    gateway.hush()
    with gateway.output_of_jvm() as output:
        try:
            jvm = gateway.launch(conf, found, settings.is_local, output)
            with held_back(jvm.proc.terminate if jvm.proc else lambda: None) as held:
                return _session(SparkSession, conf, jvm, held)
        except (Py4JError, PySparkException, OSError) as error:
            cause = start_failure(gateway.text_of(output)) or explain(error).message
            gateway.end()
            raise EngineError(
                f"Spark did not start: {cause}", _start_hint(bool(located.packages), found)
            ) from error
        except BaseException:
            gateway.forget()  # what a signal has cut short is no Spark that the next start could use
            raise


def _archive(
    settings: SparkSettings, located: jars.Jars, found: java.Java, spark: str
) -> archive.Archive | None:
    """The class-data archive of this start; ``None`` where there can be none.

    The user's own JVM options may be of a kind that an archive must be made with, so they rule it out.
    """
    own_options = "spark.driver.extraJavaOptions" in settings.conf
    if not settings.is_local or located.packages or own_options or not archive.is_wanted():
        return None
    return archive.archive_for(found.home, found.version, spark, located.files, QUICK_JVM)


def start_to_archive(settings: SparkSettings, located: jars.Jars, path: Path) -> SparkSession:
    """Start Spark in a JVM that writes the classes it has loaded to ``path`` when it ends."""
    found = java.find(CURRENT.java)
    conf = with_jvm_option(spark_conf(settings, located), f"-XX:ArchiveClassesAtExit={path}")
    return _start(conf, settings, found, located)


def stop(session: SparkSession, seconds: float = 30) -> None:
    """Stop Spark and its JVM, so that the next :func:`start` may choose its own class path.

    :param seconds: how long to wait for the JVM's end.
    """
    session.stop()
    gateway.end(seconds)


def _another_session(session: SparkSession, settings: SparkSettings) -> SparkSession:
    if EXTENSIONS not in (session.conf.get("spark.sql.extensions", "") or ""):
        raise EngineError(
            "Spark runs in this process already, without Iceberg's SQL extensions",
            f"start it with spark.sql.extensions={EXTENSIONS}, or stop it first",
        )
    another = session.newSession()
    for key, value in catalog_conf(settings).items():
        another.conf.set(key, value)
    return another


def _session(
    session_class: type[SparkSession], conf: Mapping[str, str], jvm: Any, held: Held
) -> SparkSession:
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized(gateway=jvm)
    whole = SparkConf()
    for key, value in conf.items():
        whole.set(key, value)
    context = SparkContext(conf=whole)
    held.hold()  # PySpark has set its own handler
    return session_class(context)


def _start_hint(was_fetching: bool, found: java.Java) -> str:
    hint = (
        f"without a network, put the jars into a folder and name it in {jars.JARS_VARIABLE}"
        if was_fetching
        else f"{DEBUG_VARIABLE}=1 shows what Spark prints"
    )
    wrong = java.wrong_home((found.major,))
    return hint if wrong is None else f"{hint}; {wrong}, and Spark was started on {found}"
