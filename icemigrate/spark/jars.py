"""The jars of a Spark session: which ones a catalog needs, where they are, and by which loader they come.

One class loader of the JVM must load all of them.  Spark gives jars of its class path to one loader, and jars
of ``spark.jars`` and ``spark.jars.packages`` to another: a client for a storage or a driver that the one has
is not found by an Iceberg that the other has.

Jars come from the user's settings, from Spark's own folder, from icemigrate's cache, or from Ivy's; what is
missing is fetched into the cache (:mod:`icemigrate.spark.jar_download`) before Spark starts.
"""

from __future__ import annotations

import os
import pwd
import re
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen
from icemigrate.versions import POSTGRES_JDBC, SQLITE_JDBC, SparkRelease

if TYPE_CHECKING:
    from icemigrate.spark.session_settings import SparkSettings

JARS_VARIABLE = "ICEMIGRATE_JARS"
CACHE_VARIABLE = "ICEMIGRATE_CACHE"


class JarLocations(Frozen):
    """Jars for one session.

    :param files: on this machine already.
    :param missing: Maven coordinates of jars that must be fetched.
    :param on_class_path: they are loaded with Spark itself, which is quickest.
    :param by_spark: Spark loads them, and sends them to executors (``spark.jars``).
    """

    files: tuple[Path, ...] = ()
    missing: tuple[str, ...] = ()
    on_class_path: bool = True
    by_spark: bool = False


def required_packages(release: SparkRelease, catalog_conf: Mapping[str, str]) -> tuple[str, ...]:
    """The Maven coordinates that a catalog needs: Iceberg's runtime, a driver, a client for its storage.

    :param catalog_conf: settings of ``spark.sql.catalog.<name>``, without that prefix.
    """
    uri = catalog_conf.get("uri", "")
    packages = [release.iceberg_runtime]
    if uri.startswith("jdbc:sqlite:"):
        packages.append(SQLITE_JDBC)
    if uri.startswith("jdbc:postgresql:"):
        packages.append(POSTGRES_JDBC)
    if _uses_aws(catalog_conf):
        packages.append(release.aws_bundle)
    return tuple(packages)


def _uses_aws(catalog_conf: Mapping[str, str]) -> bool:
    implementations = (catalog_conf.get("io-impl", ""), catalog_conf.get("catalog-impl", ""))
    if any(name.startswith("org.apache.iceberg.aws.") for name in implementations):
        return True
    if catalog_conf.get("type") in ("glue", "s3tables"):
        return True
    # A REST catalog may sign its requests for AWS, which the client of the same bundle does.
    return (
        catalog_conf.get("warehouse", "").startswith("s3:")
        or catalog_conf.get("rest.sigv4-enabled") == "true"
    )


def locate_jars(
    settings: SparkSettings, release: SparkRelease, environ: Mapping[str, str] | None = None
) -> JarLocations:
    """Find the jars, and what must be fetched.

    A jar that the user gives to Spark, in any version, is used in place of the one that icemigrate would add.

    :param environ: the process environment; by default ``os.environ``.
    :raises EngineError: the folder of jars does not contain every jar, or the cache has no place.
    """
    environ = os.environ if environ is None else environ
    theirs = [
        *_listed(settings.conf, "spark.jars"),
        *(package.replace(":", "_") for package in _listed(settings.conf, "spark.jars.packages")),
    ]
    with_spark = _names_on_class_path(settings.conf, environ)
    required = (*required_packages(release, settings.catalog_conf), *settings.packages)
    needed = tuple(p for p in required if not _same_jars(p, (*with_spark, *map(_stem, theirs))))
    files, missing = _files(needed, settings, environ)
    # Where Spark loads any jar, it loads all, unless Iceberg is on its class path.
    by_spark = bool(theirs) or not settings.is_local
    on_class_path = not by_spark or bool(_same_jars(release.iceberg_runtime, with_spark))
    return JarLocations(files, missing, on_class_path, by_spark)


def _files(
    needed: tuple[str, ...], settings: SparkSettings, environ: Mapping[str, str]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    folder = settings.jars_dir
    if folder is None and environ.get(JARS_VARIABLE):
        folder = Path(environ[JARS_VARIABLE]).expanduser()
    if folder is not None:
        return _from_folder(folder, needed), ()
    folders = jar_folders(settings, environ) if needed else []
    found = {package: _intact_jar(folders, package) for package in needed}
    files = tuple(jar for jar in found.values() if jar is not None)
    return files, tuple(package for package, jar in found.items() if jar is None)


def _listed(conf: Mapping[str, str], key: str) -> list[str]:
    return [part.strip() for part in conf.get(key, "").split(",") if part.strip()]


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(".jar")


def spark_home(environ: Mapping[str, str]) -> str:
    """The folder of Spark, with its ``jars``: ``SPARK_HOME``, or PySpark's own; empty where there is none."""
    # Importing PySpark would take longer than all else that `doctor` does.
    pyspark = find_spec("pyspark")
    own = str(Path(pyspark.origin).parent) if pyspark and pyspark.origin else ""
    return environ.get("SPARK_HOME") or own


def spark_core_jars(environ: Mapping[str, str]) -> list[Path]:
    """The jar that stands for an installation of Spark; none where there is no Spark."""
    return sorted(Path(spark_home(environ), "jars").glob("spark-core_*.jar"))


def _names_on_class_path(conf: Mapping[str, str], environ: Mapping[str, str]) -> list[str]:
    """Names, without ``.jar``, of the jars that come with Spark: of its own folder, and of the class path."""
    path = [f"{spark_home(environ)}/jars/*", *conf.get("spark.driver.extraClassPath", "").split(os.pathsep)]
    names: list[str] = []
    for part in path:
        if part.endswith("/*"):
            names += [jar.stem for jar in Path(part[:-2]).glob("*.jar")]
        else:
            names.append(_stem(part))
    return names


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for what can be made again: ``ICEMIGRATE_CACHE``, or by the XDG base directories.

    A relative folder would be one of the working directory, which may be a repository with jars of its own.

    :raises EngineError: the variable names a relative folder, or the user has no home.
    """
    environ = os.environ if environ is None else environ
    named = environ.get(CACHE_VARIABLE)
    if named:
        folder = Path(named).expanduser()
        if not folder.is_absolute():
            raise EngineError(f"{CACHE_VARIABLE} is not an absolute path: {named}", "set it to one")
        return folder
    xdg = Path(environ.get("XDG_CACHE_HOME", ""))
    try:
        return (xdg if xdg.is_absolute() else Path.home() / ".cache") / "icemigrate"
    except RuntimeError:
        raise EngineError(
            "this user has no home folder, so there is no place for a cache",
            f"set {CACHE_VARIABLE} to a folder that this user can write",
        ) from None


def jar_folders(settings: SparkSettings, environ: Mapping[str, str] | None = None) -> list[Path]:
    """Where jars are looked for; what is fetched goes into the first.

    Ivy writes to the home of the password file, which is not always ``HOME``.
    """
    if settings.ivy_dir is not None:
        return [settings.ivy_dir / "jars"]
    folders = [cache_folder(environ) / "jars"]
    homes: list[Path] = []
    with suppress(RuntimeError):
        homes.append(Path.home())
    with suppress(KeyError):
        homes.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    for home in dict.fromkeys(homes):
        with suppress(OSError):
            folders += [ivy / "jars" for ivy in sorted(home.glob(".ivy2*"), reverse=True)]
    return folders


def jar_name(package: str) -> str:
    """The name that Ivy gives to the jar of Maven coordinates."""
    group, artifact, version = package.split(":")[:3]
    return f"{group}_{artifact}-{version}.jar"


def _intact_jar(folders: Iterable[Path], package: str) -> Path | None:
    for folder in folders:
        jar = folder / jar_name(package)
        with suppress(OSError):
            # A copy that was cut off by a kill has no directory at its end, and is fetched again.
            if zipfile.is_zipfile(jar):
                return jar
    return None


def _same_jars(package: str, names: Iterable[str]) -> list[str]:
    """Those of the jars' names that are a package's, in any version."""
    group, artifact = map(re.escape, package.split(":")[:2])
    pattern = re.compile(rf"({group}_)?{artifact}[-_][0-9].*")
    return [name for name in names if pattern.fullmatch(name)]


def _from_folder(folder: Path, packages: tuple[str, ...]) -> tuple[Path, ...]:
    if not folder.is_dir():
        raise EngineError(
            f"the jars folder {folder} does not exist",
            f"fix {JARS_VARIABLE} or `jars` in the project file, or remove it to download the jars",
        )
    jars = {jar.stem: jar for jar in sorted(folder.glob("*.jar"))}
    chosen: list[Path] = []
    missing: list[str] = []
    for package in packages:
        artifact, version = package.split(":")[1:3]
        same = _same_jars(package, jars)
        if not same:
            missing.append(f"{artifact}-{version}.jar")
            continue
        # Another version of the same jar is the owner's choice, two of them at once would be an accident.
        exact = [name for name in same if name.endswith(f"-{version}")]
        chosen.append(jars[(exact or same)[-1]])
        jars = {name: jar for name, jar in jars.items() if name not in same}
    if missing:
        raise EngineError(
            f"the jars folder {folder} is missing {', '.join(missing)}",
            "copy them from a machine with network access: once Spark ran there, `icemigrate doctor` shows "
            "where they are",
        )
    return (*chosen, *jars.values())
