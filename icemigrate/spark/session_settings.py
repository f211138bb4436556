"""The settings of a Spark session, and the settings pinned while a statement runs.

A session may be the user's own, and a project file may set anything.  A setting of this list makes a
statement write elsewhere, write something else, or read something else, without an error.  So each statement
runs with the values below, and the session has its own values again afterwards.

Other settings are left alone.  ``spark.sql.caseSensitive`` only decides whether a statement fails.
``spark.sql.session.timeZone`` is set for a migration, as its file has it; the timestamps that icemigrate
itself writes into statements have an offset.  ``spark.sql.iceberg.distribution-mode``, compression, split
sizes and planning modes change files and speed, not rows.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.spark.jars import JarLocations
from icemigrate.system.process import is_debugging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"

# The JVM lives for seconds: the optimising compiler and a parallel collector cost more than they bring.
# With one compiler alone Java reserves a fifth of its usual room for compiled code, which a session that goes
# on for long fills ("Out of space in CodeCache"), so that it is asked for the usual.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The settings of a new session.

    :param catalog_name: Spark's name for the catalog; on SQL catalogs it is also the key of the rows.
    :param catalog_conf: settings of ``spark.sql.catalog.<catalog_name>``, without that prefix.
    :param master: as in ``spark.master``.
    :param conf: further settings of Spark, which override the ones set here.
    :param jars_dir: a folder with the jars, for a machine without a network.
    :param packages: Maven coordinates of jars beside those that the catalog needs.
    """

    catalog_name: str
    # Never shown: both contain credentials.
    catalog_conf: Mapping[str, str] = field(repr=False)
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    jars_dir: Path | None = None
    packages: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether driver and executor are one process on this machine."""
        return self.master.split("[")[0] == "local"

    @property
    def ivy_dir(self) -> Path | None:
        """The cache of jars that the user names, as in ``spark.jars.ivy``."""
        return Path(self.conf["spark.jars.ivy"]).expanduser() if "spark.jars.ivy" in self.conf else None


def sqlite_catalog_conf(database: Path, warehouse: Path) -> dict[str, str]:
    """The settings of the embedded default: a JDBC catalog in one SQLite file.

    :param database: the SQLite file; its folder must exist.
    :param warehouse: the folder for the tables' files.
    """
    # The warehouse is a plain path: Hadoop does not decode a URI's `%20`, and every reader accepts paths.
    # SQLite reports a lock as an error at once; a timeout of a minute lets short writers finish.
    return {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{database.absolute()}?busy_timeout=60000",
        "jdbc.schema-version": "V1",
        "warehouse": str(warehouse.absolute()),
    }


def spark_conf(settings: SparkSettings, located: JarLocations) -> dict[str, str]:
    """All of Spark's settings: ours, then the catalog's, then the user's."""
    conf = {
        "spark.app.name": "icemigrate",
        "spark.master": settings.master,
        "spark.sql.extensions": EXTENSIONS,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.variable.substitute": "false",  # else `${…}` in a quoted name is taken for a variable
        "spark.log.level": "WARN" if is_debugging() else "ERROR",
        # Spark's own pattern misses Iceberg's `credential`.
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|credential",
        "spark.driver.extraJavaOptions": QUICK_JVM,
    }
    if settings.is_local:
        conf |= {
            "spark.ui.enabled": "false",
            # Nothing shows the statistics of ended jobs, and by default they take 100 MB of a long `ingest`.
            "spark.ui.retainedJobs": "100",
            "spark.ui.retainedStages": "100",
            "spark.ui.retainedTasks": "1000",
            "spark.sql.ui.retainedExecutions": "20",
            # Broadcasts of ended jobs, one of each batch, stay until the JVM collects garbage.
            "spark.cleaner.periodicGC.interval": "5min",
            # Only the page that is off shows the plan that Spark writes out for each statement.
            "spark.sql.ui.explainMode": "simple",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": str(_scratch_folder()),
            "spark.sql.shuffle.partitions": "4",
            "spark.python.daemon.module": "icemigrate.spark.worker_daemon",
        }
    if located.files and located.on_class_path:
        conf["spark.driver.extraClassPath"] = os.pathsep.join(map(str, located.files))
    if located.files and located.by_spark:
        conf["spark.jars"] = ",".join(map(str, located.files))
    return _with_user_conf(conf | catalog_conf(settings), settings.conf)


def catalog_conf(settings: SparkSettings) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{settings.catalog_name}"
    # A cache would still show a table as it was before a metadata commit or another process changed it.
    values = {"cache-enabled": "false", **settings.catalog_conf}
    return {prefix: _CATALOG_CLASS, **{f"{prefix}.{key}": value for key, value in values.items()}}


def _with_user_conf(ours: dict[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """The user's settings override ours, except for lists, which are extended, because
    Spark needs our part.
    """
    separators = {
        "spark.sql.extensions": ",",
        "spark.jars": ",",
        "spark.driver.extraClassPath": os.pathsep,
        "spark.driver.extraJavaOptions": " ",
    }
    merged = ours | dict(theirs)
    for key, separator in separators.items():
        if key in ours and key in theirs and ours[key] not in theirs[key]:
            merged[key] = f"{ours[key]}{separator}{theirs[key]}"
    return merged


def with_jvm_option(conf: Mapping[str, str], option: str) -> dict[str, str]:
    key = "spark.driver.extraJavaOptions"
    return {**conf, key: f"{conf[key]} {option}"}


def _scratch_folder() -> Path:
    """A folder for files that Spark would otherwise write to the current one; removed when
    the process ends.
    """
    folder = Path(tempfile.mkdtemp(prefix="icemigrate-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


TIME_ZONE = "spark.sql.session.timeZone"
SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property"
"""The prefix of a snapshot summary key as a setting of the session."""
PINNED: Mapping[str, str | None] = {
    # Stage writes to a table with `write.wap.enabled`, or move reads and writes to another branch.
    "spark.wap.id": None,
    "spark.wap.branch": None,
    # Values that do not fit become null or wrap around instead of being an error.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # `INSERT OVERWRITE` of all rows replaces only some partitions.
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    # A backslash in a string literal is an ordinary character.
    "spark.sql.parser.escapedStringLiterals": "false",
    # Nulls are written to required columns, fields in another order, or a write changes the schema.
    "spark.sql.iceberg.check-nullability": "true",
    "spark.sql.iceberg.check-ordering": "true",
    "spark.sql.iceberg.merge-schema": "false",
    # `${…}` in a statement, in a quoted name too, is replaced.
    "spark.sql.variable.substitute": "false",
}
"""The settings by name; ``None`` means that the session has none."""


def pin_settings(session: SparkSession, values: Mapping[str, str | None] = PINNED) -> dict[str, str | None]:
    """Set the pinned values in the session.

    :returns: the previous values, by name; ``None`` where there was none.
    """
    had = {key: session.conf.get(key, None) for key in values}
    changed = {key: value for key, value in had.items() if value != values[key]}
    set_settings(session, {key: values[key] for key in changed})
    return changed


@contextmanager
def changed_settings(session: SparkSession, values: Mapping[str, str | None] = PINNED) -> Iterator[None]:
    """A block in which the session has these values, by default the pinned ones."""
    before = pin_settings(session, values)
    try:
        yield
    except Exception:
        with suppress(Exception):  # the block's own error is shown, also after the end of the JVM
            set_settings(session, before)
        raise
    # No `finally`: after Ctrl-C, a call would wait for the answer of the call that was interrupted.
    set_settings(session, before)


def set_settings(session: SparkSession, values: Mapping[str, str | None]) -> None:
    """Set values in the session; ``None`` removes one."""
    for key, value in values.items():
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value)
