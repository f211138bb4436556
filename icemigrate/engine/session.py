"""Start Spark: quickly, quietly, and with nothing left in the user's folder.

The JVM is launched by hand (:func:`pyspark.java_gateway.launch_gateway`) for three reasons: its output can be
kept away from the user's terminal and read when it fails, the Java that was found can be given to it, and the
catalog's secrets go to it over the socket instead of standing in its command line for all to see.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from icemigrate.engine import archive, jars, java
from icemigrate.engine.explain import explain, start_failure
from icemigrate.engine.interrupts import Held, held_back
from icemigrate.errors import EngineError, MissingExtra, extra_hint
from icemigrate.versions import CURRENT, spark_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEBUG_VARIABLE = "ICEMIGRATE_DEBUG"
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"

# The JVM lives for seconds: the optimising compiler and a parallel collector cost more than they bring.
# With one compiler alone Java reserves a fifth of its usual room for compiled code, which a session that goes
# on for long fills ("Out of space in CodeCache"), so that it is asked for the usual.
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"

# What the JVM must know before it runs, so that it has to stand in its command line.
_LAUNCH_KEYS = ("spark.master", "spark.driver.", "spark.jars", "spark.submit.", "spark.local.dir")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What a session is started with.

    :param catalog_name: Spark's name for the catalog; on SQL catalogs it is also the key of the rows.
    :param catalog_conf: settings of ``spark.sql.catalog.<catalog_name>``, without that prefix.
    :param master: as in ``spark.master``.
    :param conf: further settings of Spark, which win over the ones set here.
    :param jars_dir: a folder with the jars, for a machine without a network.
    :param packages: Maven coordinates beside those that the catalog needs.
    """

    catalog_name: str
    # Never shown: credentials stand in both.
    catalog_conf: Mapping[str, str] = field(repr=False)
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    jars_dir: Path | None = None
    packages: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether driver and executor are one process on this machine."""
        return self.master.split("[")[0] == "local"


def sqlite_catalog_conf(database: Path, warehouse: Path) -> dict[str, str]:
    """The settings of the embedded default: a JDBC catalog in one SQLite file.

    :param database: the SQLite file; its folder must exist.
    :param warehouse: the folder for the tables' files.
    """
    # The warehouse is a plain path: Hadoop does not decode a URI's `%20`, and every reader knows paths.
    # SQLite's own answer to a lock is an error at once; a minute of patience lets short writers pass.
    return {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{database.absolute()}?busy_timeout=60000",
        "jdbc.schema-version": "V1",
        "warehouse": str(warehouse.absolute()),
    }


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
    _end_jvm()
    release = spark_release(pyspark.__version__)
    found = java.find(release.java)
    wrong = java.wrong_home(release.java)
    if wrong is not None:
        sys.stderr.write(f"{wrong}; Spark runs on {found}\n")
    located = jars.locate(
        required=jars.needed(release, settings.catalog_conf),
        extra=settings.packages,
        jars_dir=settings.jars_dir,
        ivy_dir=_ivy_dir(settings.conf),
    )
    if located.packages:
        names = ", ".join(package.split(":")[1] for package in located.packages)
        sys.stderr.write(f"Spark fetches {names} (once, into its cache) …\n")
    conf = spark_conf(settings, located)
    kept = _archive(settings, located, found, pyspark.__version__)
    if kept is not None and kept.is_sound():
        try:
            return _start(_with_option(conf, kept.options()), settings, found, located)
        except EngineError:
            kept.discard()  # if it was not to blame, the next try says what is
    session = _start(conf, settings, found, located)
    if kept is not None:
        atexit.register(archive.make_later, kept, found.home, located.files)
    return session


def _start(
    conf: Mapping[str, str], settings: SparkSettings, found: java.Java, located: jars.Jars
) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _hush_pyspark()
    with _jvm_output() as output:
        try:
            gateway = _launch(conf, found, settings.is_local, output)
            with held_back(gateway.proc.terminate if gateway.proc else lambda: None) as held:
                return _session(SparkSession, conf, gateway, held)
        except (Py4JError, PySparkException, OSError) as error:
            cause = start_failure(_text(output)) or explain(error).message
            _end_jvm()
            raise EngineError(
                f"Spark did not start: {cause}", _start_hint(bool(located.packages), found)
            ) from error
        except BaseException:
            _forget()  # what a signal has cut short is no Spark that the next start could use
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
    return archive.archive_for(found.home, found.version, spark, located.files, _QUICK_JVM)


def start_to_archive(settings: SparkSettings, located: jars.Jars, path: Path) -> SparkSession:
    """Start Spark in a JVM that writes the classes it has loaded to ``path`` when it ends."""
    found = java.find(CURRENT.java)
    conf = _with_option(spark_conf(settings, located), f"-XX:ArchiveClassesAtExit={path}")
    return _start(conf, settings, found, located)


def _with_option(conf: Mapping[str, str], option: str) -> dict[str, str]:
    key = "spark.driver.extraJavaOptions"
    return {**conf, key: f"{conf[key]} {option}"}


def stop(session: SparkSession, seconds: float = 30) -> None:
    """Stop Spark and its JVM, so that the next :func:`start` may choose its own class path.

    :param seconds: how long to wait for the JVM's end.
    """
    session.stop()
    _end_jvm(seconds)


def _end_jvm(seconds: float = 30) -> None:
    """PySpark would keep the JVM for the next context, with the class path of the last one."""
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


def _forget() -> None:
    """End the JVM, and have PySpark know of none."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with suppress(Exception):
        _end_jvm()
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _another_session(session: SparkSession, settings: SparkSettings) -> SparkSession:
    if _EXTENSIONS not in (session.conf.get("spark.sql.extensions", "") or ""):
        raise EngineError(
            "Spark runs in this process already, without Iceberg's SQL extensions",
            f"start it with spark.sql.extensions={_EXTENSIONS}, or stop it first",
        )
    another = session.newSession()
    for key, value in _catalog_conf(settings).items():
        another.conf.set(key, value)
    return another


def _catalog_conf(settings: SparkSettings) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{settings.catalog_name}"
    # A cache would go on showing a table as it was before a metadata commit or another process changed it.
    values = {"cache-enabled": "false", **settings.catalog_conf}
    return {prefix: _CATALOG_CLASS, **{f"{prefix}.{key}": value for key, value in values.items()}}


def spark_conf(settings: SparkSettings, located: jars.Jars) -> dict[str, str]:
    """The whole of Spark's settings: ours, then the catalog's, then the user's."""
    conf = {
        "spark.app.name": "icemigrate",
        "spark.master": settings.master,
        "spark.sql.extensions": _EXTENSIONS,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.variable.substitute": "false",  # else `${…}` in a quoted name is taken for a variable
        "spark.log.level": "WARN" if _debugging() else "ERROR",
        # Spark's own pattern misses Iceberg's `credential`.
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|credential",
        "spark.driver.extraJavaOptions": _QUICK_JVM,
    }
    if settings.is_local:
        conf |= {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": str(_scratch_folder()),
            "spark.sql.shuffle.partitions": "4",
        }
    # Where driver and executor are one process, the class path spares the copying that `spark.jars` does.
    if located.files and settings.is_local:
        conf["spark.driver.extraClassPath"] = os.pathsep.join(map(str, located.files))
    elif located.files:
        conf["spark.jars"] = ",".join(map(str, located.files))
    if located.packages:
        conf["spark.jars.packages"] = ",".join(located.packages)
    return _with_user_conf(conf | _catalog_conf(settings), settings.conf)


def _with_user_conf(ours: dict[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """The user's settings win, except that lists are added to, since Spark does not work without our part."""
    separators = {
        "spark.sql.extensions": ",",
        "spark.jars": ",",
        "spark.jars.packages": ",",
        "spark.driver.extraClassPath": os.pathsep,
        "spark.driver.extraJavaOptions": " ",
    }
    merged = ours | dict(theirs)
    for key, separator in separators.items():
        if key in ours and key in theirs and ours[key] not in theirs[key]:
            merged[key] = f"{ours[key]}{separator}{theirs[key]}"
    return merged


def _launch(conf: Mapping[str, str], found: java.Java, is_local: bool, output: IO[bytes] | None) -> Any:
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    launch = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        if key.startswith(_LAUNCH_KEYS):
            launch.set(key, value)
    # Standard output belongs to icemigrate alone: what the JVM prints there goes to standard error at most.
    streams = {"stdout": output or 2, "stderr": output or 2}
    with _environment(JAVA_HOME=str(found.home), SPARK_LOCAL_IP="127.0.0.1" if is_local else None):
        return launch_gateway(conf=launch, popen_kwargs=streams)  # type: ignore[no-untyped-call]


def _session(
    session_class: type[SparkSession], conf: Mapping[str, str], gateway: Any, held: Held
) -> SparkSession:
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized(gateway=gateway)
    whole = SparkConf()
    for key, value in conf.items():
        whole.set(key, value)
    context = SparkContext(conf=whole)
    held.hold()  # PySpark has set its own handler
    return session_class(context)


@contextmanager
def _jvm_output() -> Iterator[IO[bytes] | None]:
    """Where the JVM writes: a file without a name, or the terminal (``None``) while debugging."""
    if _debugging():
        yield None
    else:
        # The JVM goes on writing to it after it is closed here; it is gone when the JVM is.
        with tempfile.TemporaryFile() as output:
            yield output


def _hush_pyspark() -> None:
    """Keep PySpark from logging what is told as a fault.

    PySpark 4 logs every failed statement to standard error as well, with the JVM's whole stack trace; and
    Py4J every call that Ctrl-C or the JVM's end cut short, with Python's, in part by the root logger.
    """
    if not _debugging():
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _text(output: IO[bytes] | None) -> str:
    if output is None:
        return ""
    output.seek(0)
    return output.read().decode("utf-8", errors="replace")


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


def _scratch_folder() -> Path:
    """A folder for what Spark would otherwise put into the current one; gone when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="icemigrate-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _ivy_dir(conf: Mapping[str, str]) -> Path | None:
    return Path(conf["spark.jars.ivy"]).expanduser() if "spark.jars.ivy" in conf else None


def _debugging() -> bool:
    return os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


def _start_hint(was_fetching: bool, found: java.Java) -> str:
    hint = (
        f"without a network, put the jars into a folder and name it in {jars.JARS_VARIABLE}"
        if was_fetching
        else f"{DEBUG_VARIABLE}=1 shows what Spark prints"
    )
    wrong = java.wrong_home((found.major,))
    return hint if wrong is None else f"{hint}; {wrong}, and Spark was started on {found}"
