"""Fetches jars into icemigrate's cache, by the package resolution of Spark itself.

So the settings that a user knows hold: ``spark.jars.repositories``, ``spark.jars.ivySettings``, a proxy in
``spark.driver.extraJavaOptions``, ``DEFAULT_ARTIFACT_REPOSITORY``.  Ivy compares the checksums that a
repository has.  A jar gets its name in the cache only when it is whole, and one process fetches at a time.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from icemigrate.errors import EngineError, os_error_reason
from icemigrate.hidden_characters import escaped_lines
from icemigrate.redaction import redact_secrets
from icemigrate.spark import gateway
from icemigrate.spark.find_java import JavaInstallation
from icemigrate.spark.jars import (
    CACHE_VARIABLE,
    JARS_VARIABLE,
    JarLocations,
    jar_folders,
    jar_name,
    locate_jars,
)
from icemigrate.spark.java_errors import start_failure, to_engine_error
from icemigrate.spark.session_settings import SparkSettings, spark_conf
from icemigrate.system.waits import announce_wait
from icemigrate.versions import SparkRelease

_WITH_PYSPARK = ("org.apache.hadoop:hadoop-client-api", "org.apache.hadoop:hadoop-client-runtime")
_NOT_FOUND = re.compile(r"^\s*:: ([^#\s]+)#([^;\s]+);(\S+): not found$", re.MULTILINE)
_TRIED = re.compile(r"^\s*==== (\S+): tried\s+(\S+)$", re.MULTILINE)
_FAILED = re.compile(r"Server access error at url \S+ \([\w.]*?(\w+): (.+?)\)?$", re.MULTILINE)
_UNKNOWN_HOST = re.compile(r"^\s*Host (\S+) not found\.", re.MULTILINE)


def fetch_missing(
    settings: SparkSettings, release: SparkRelease, located: JarLocations, java: JavaInstallation
) -> JarLocations:
    """Fetch what is missing.

    :returns: the locations of all jars.
    :raises EngineError: jars cannot be fetched, are damaged, or cannot be stored.
    """
    names = ", ".join(package.split(":")[1] for package in located.missing)
    text = f"Downloading {names} (cached for later runs) …"
    if not announce_wait(text):
        sys.stderr.write(escaped_lines(redact_secrets(f"{text}\n")))
    folder = jar_folders(settings)[0]
    with _one_at_a_time(folder) as scratch:
        # Another process may have fetched them, while this one waited for it.
        missing = locate_jars(settings, release).missing
        if missing:
            _resolve(settings, missing, scratch, java)
        for package in missing:
            fetched = scratch / "jars" / jar_name(package)
            _require_whole(fetched, package)
            with _stored_in(folder):
                fetched.replace(folder / fetched.name)
    return locate_jars(settings, release)


@contextmanager
def _stored_in(folder: Path) -> Iterator[None]:
    """A block in which any error of the system is one of the folder."""
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"jars cannot be stored in {folder}: {os_error_reason(error)}",
            f"set {CACHE_VARIABLE} to a folder that this user can write",
        ) from error


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[Path]:
    """A block that one process at a time is in; its scratch folder is on the disk of the jars."""
    with ExitStack() as blocks:
        with _stored_in(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock = blocks.enter_context((folder / ".fetch.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in folder.glob(".fetch-*"):  # of processes that were killed
                shutil.rmtree(left, ignore_errors=True)
            # A name of its own: the JVM of a killed process may still write into the earlier folder.
            scratch = Path(tempfile.mkdtemp(prefix=".fetch-", dir=folder))
        blocks.callback(shutil.rmtree, scratch, ignore_errors=True)
        yield scratch


def _resolve(
    settings: SparkSettings, packages: tuple[str, ...], scratch: Path, java: JavaInstallation
) -> None:
    """Let Spark resolve the packages into a folder of Ivy's, which it does before it runs a program."""
    from pyspark.errors import PySparkException

    conf = {
        **{key: value for key, value in spark_conf(settings, JarLocations()).items() if key != "spark.jars"},
        "spark.master": "local",
        "spark.jars.packages": ",".join(packages),
        "spark.jars.ivy": str(scratch),
    }
    # PySpark has them, and they are larger than all that is fetched.
    conf.setdefault("spark.jars.excludes", ",".join(_WITH_PYSPARK))
    with gateway.output_of_jvm() as output:
        try:
            gateway.end_jvm(gateway.launch_jvm(conf, java, is_local=True, output=output))
        except (PySparkException, OSError) as error:
            text = gateway.text_of(output)
            raise (
                fetch_error(text, jar_folders(settings))
                or EngineError(
                    f"Spark failed to fetch {', '.join(packages)}: "
                    f"{start_failure(text) or to_engine_error(error).message}"
                )
            ) from error


def _require_whole(jar: Path, package: str) -> None:
    try:
        with zipfile.ZipFile(jar) as content:
            damaged = content.testzip() is not None
    except FileNotFoundError:
        raise EngineError(
            f"Spark fetched no jar of {package} with the name {jar.name}",
            f"put the jars in a folder and set {JARS_VARIABLE} to it",
        ) from None
    except zipfile.BadZipFile:
        damaged = True
    if damaged:
        raise EngineError(
            f"the repository's jar of {package} is damaged",
            "fix the repository, or set `spark.jars.repositories` to another one",
        )


def fetch_error(output: str, folders: Sequence[Path] = ()) -> EngineError | None:
    """The error of packages that Spark could not resolve; ``None`` where it resolved all.

    :param output: of the JVM, with Ivy's report.
    :param folders: where the jars were looked for before.
    """
    unresolved = dict.fromkeys(":".join(found) for found in _NOT_FOUND.findall(output))
    if not unresolved:
        return None
    tried = {name: urlsplit(url).hostname for name, url in _TRIED.findall(output)}
    places = [
        *map(str, folders),
        *(f"repository `{name}`" + (f" ({host})" if host else "") for name, host in tried.items()),
    ]
    reasons = [f"{why} ({kind})" for kind, why in _FAILED.findall(output)]
    reasons += [f"host {host} not found" for host in _UNKNOWN_HOST.findall(output)]
    lines = [
        f"jars are missing and could not be fetched: {', '.join(unresolved)}",
        *(f"not in {place}" for place in places),
        *reasons[:1],
    ]
    return EngineError(
        "\n  ".join(lines),
        f"without network access, put the jars in a folder and set {JARS_VARIABLE} to it; "
        "behind a mirror, set `spark.jars.repositories` or `spark.jars.ivySettings` in `spark.conf`",
    )
