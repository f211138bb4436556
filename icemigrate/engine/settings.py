"""What Spark is told before it starts: our settings, the catalog's, and the user's, which win."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from icemigrate.debugging import is_debugging
from icemigrate.engine.jars import Jars

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"

# The JVM lives for seconds: the optimising compiler and a parallel collector cost more than they bring.
# With one compiler alone Java reserves a fifth of its usual room for compiled code, which a session that goes
# on for long fills ("Out of space in CodeCache"), so that it is asked for the usual.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"


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

    @property
    def ivy_dir(self) -> Path | None:
        """The cache of jars that the user names, as in ``spark.jars.ivy``."""
        return Path(self.conf["spark.jars.ivy"]).expanduser() if "spark.jars.ivy" in self.conf else None


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


def spark_conf(settings: SparkSettings, located: Jars) -> dict[str, str]:
    """The whole of Spark's settings: ours, then the catalog's, then the user's."""
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
    return _with_user_conf(conf | catalog_conf(settings), settings.conf)


def catalog_conf(settings: SparkSettings) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{settings.catalog_name}"
    # A cache would go on showing a table as it was before a metadata commit or another process changed it.
    values = {"cache-enabled": "false", **settings.catalog_conf}
    return {prefix: _CATALOG_CLASS, **{f"{prefix}.{key}": value for key, value in values.items()}}


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


def with_jvm_option(conf: Mapping[str, str], option: str) -> dict[str, str]:
    key = "spark.driver.extraJavaOptions"
    return {**conf, key: f"{conf[key]} {option}"}


def _scratch_folder() -> Path:
    """A folder for what Spark would otherwise put into the current one; gone when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="icemigrate-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
