"""Where Iceberg's jars come from.

Once fetched by Spark's own package resolution they lie in Ivy's folder, and are then put on the class path
directly: neither the network nor Ivy's own work of about a second is needed again.  A machine without a
network is served from a folder that holds the same jars.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen
from icemigrate.versions import POSTGRES_JDBC, SQLITE_JDBC, SparkRelease

JARS_VARIABLE = "ICEMIGRATE_JARS"


class Jars(Frozen):
    """Jars for one session.

    :param files: on this machine already.
    :param packages: Maven coordinates that Spark shall resolve while it starts.
    """

    files: tuple[Path, ...] = ()
    packages: tuple[str, ...] = ()


def needed(release: SparkRelease, catalog_conf: Mapping[str, str]) -> tuple[str, ...]:
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


def locate(
    required: tuple[str, ...],
    extra: tuple[str, ...] = (),
    jars_dir: Path | None = None,
    ivy_dir: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Jars:
    """Find the jars, or say that Spark has to fetch them.

    :param required: coordinates from :func:`needed`; each is one jar that brings what it needs.
    :param extra: coordinates that the project asks for; they may need others, so Spark resolves them.
    :param jars_dir: the folder of a machine without a network; ``ICEMIGRATE_JARS`` where left out.
    :param ivy_dir: Ivy's folder (``spark.jars.ivy``), where it is not the usual one.
    :raises EngineError: the folder does not hold every jar.
    """
    environ = os.environ if environ is None else environ
    if jars_dir is None and environ.get(JARS_VARIABLE):
        jars_dir = Path(environ[JARS_VARIABLE]).expanduser()
    if jars_dir is not None:
        return Jars(files=_from_folder(jars_dir, (*required, *extra)))
    ivy_folders = [ivy_dir] if ivy_dir else sorted(Path.home().glob(".ivy2*"), reverse=True)
    found: list[Path] = []
    missing: list[str] = []
    for package in required:
        jar = _in_ivy(ivy_folders, package)
        if jar is None:
            missing.append(package)
        else:
            found.append(jar)
    return Jars(files=tuple(found), packages=(*missing, *extra))


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


def _jar_name(package: str) -> tuple[str, str, str]:
    group, artifact, version = package.split(":")[:3]
    return group, artifact, version


def _in_ivy(folders: list[Path], package: str) -> Path | None:
    group, artifact, version = _jar_name(package)
    for folder in folders:
        jar = folder / "jars" / f"{group}_{artifact}-{version}.jar"
        # A copy that was cut off by a kill has no directory at its end; Spark then fetches it again.
        if zipfile.is_zipfile(jar):
            return jar
    return None


def _from_folder(folder: Path, packages: tuple[str, ...]) -> tuple[Path, ...]:
    if not folder.is_dir():
        raise EngineError(
            f"the folder for jars {folder} does not exist",
            f"mend {JARS_VARIABLE} or `jars` in the project file, or leave it out so that Spark fetches them",
        )
    jars = sorted(folder.glob("*.jar"))
    chosen: list[Path] = []
    others = list(jars)
    missing: list[str] = []
    for package in packages:
        group, artifact, version = _jar_name(package)
        pattern = re.compile(rf"({re.escape(group)}_)?{re.escape(artifact)}-\d.*")
        same = [j for j in jars if pattern.fullmatch(j.stem)]
        exact = [j for j in same if j.stem.endswith(f"-{version}")]
        if not same:
            missing.append(f"{artifact}-{version}.jar")
            continue
        # Another version of the same jar is the owner's choice, two of them at once would be an accident.
        chosen.append((exact or same)[-1])
        others = [j for j in others if j not in same]
    if missing:
        raise EngineError(
            f"the folder for jars {folder} lacks {', '.join(missing)}",
            "copy them there from a machine with a network: after a start of Spark they lie in ~/.ivy2*/jars",
        )
    return (*chosen, *others)
