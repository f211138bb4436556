from __future__ import annotations

import pwd
import zipfile
from pathlib import Path
from typing import Any

import pytest

from icemigrate.errors import EngineError
from icemigrate.spark.jars import (
    CACHE_VARIABLE,
    JARS_VARIABLE,
    JarLocations,
    cache_folder,
    jar_folders,
    locate_jars,
    required_packages,
)
from icemigrate.spark.session_settings import SparkSettings
from icemigrate.versions import CURRENT, POSTGRES_JDBC, SPARK_RELEASES, SQLITE_JDBC, spark_release

RUNTIME = CURRENT.iceberg_runtime


def make_jar(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "")
    return path


def in_ivy(ivy: Path, package: str) -> Path:
    group, artifact, version = package.split(":")
    return make_jar(ivy / "jars", f"{group}_{artifact}-{version}.jar")


@pytest.mark.parametrize(
    ("version", "runtime"),
    [
        ("4.1.4", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"),
        ("4.0.1", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"),
        ("3.5.7", "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2"),
    ],
)
def test_each_spark_has_its_runtime(version: str, runtime: str) -> None:
    assert spark_release(version).iceberg_runtime == runtime


def test_a_spark_without_a_runtime_is_refused_by_name() -> None:
    with pytest.raises(EngineError, match=r"PySpark 4\.2\.0 is installed.*known: 4\.1, 4\.0, 3\.5") as caught:
        spark_release("4.2.0")
    assert caught.value.hint == "pip install 'pyspark~=4.1.0'"


def test_every_release_prefers_a_java_that_all_have_in_common() -> None:
    assert {release.java[0] for release in SPARK_RELEASES} == {17}


@pytest.mark.parametrize(
    ("conf", "further"),
    [
        ({}, []),
        ({"type": "rest", "uri": "https://catalog"}, []),
        ({"type": "jdbc", "uri": "jdbc:sqlite:/c.db"}, [SQLITE_JDBC]),
        ({"type": "jdbc", "uri": "jdbc:postgresql://h/db"}, [POSTGRES_JDBC]),
        ({"type": "rest", "warehouse": "s3://lake"}, [CURRENT.aws_bundle]),
        ({"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}, [CURRENT.aws_bundle]),
        ({"type": "glue"}, [CURRENT.aws_bundle]),
        ({"type": "rest", "rest.sigv4-enabled": "true"}, [CURRENT.aws_bundle]),
        ({"uri": "jdbc:postgresql://h/db", "warehouse": "s3://lake"}, [POSTGRES_JDBC, CURRENT.aws_bundle]),
    ],
)
def test_a_catalog_brings_its_driver_and_client(conf: dict[str, str], further: list[str]) -> None:
    assert required_packages(CURRENT, conf) == (RUNTIME, *further)


def settings(**given: Any) -> SparkSettings:
    return SparkSettings("lake", {"type": "jdbc", "uri": "jdbc:sqlite:/c.db"}, **given)


def locate(given: SparkSettings, home: Path, **environ: str) -> JarLocations:
    """The locations for a user whose cache is in a folder."""
    return locate_jars(given, CURRENT, {CACHE_VARIABLE: str(home / "cache"), **environ})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, of the password file too, without jars."""
    monkeypatch.setenv("HOME", str(tmp_path))
    account = pwd.struct_passwd(("me", "x", 1, 1, "", str(tmp_path / "account"), ""))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: account)
    return tmp_path


@pytest.mark.parametrize("ivy", [".ivy2", ".ivy2.5.2", "account/.ivy2.5.2", "cache"])
def test_a_jar_is_taken_from_ivy_of_either_home_or_the_cache_and_the_rest_is_missing(
    home: Path, ivy: str
) -> None:
    jar = in_ivy(home / ivy, RUNTIME)
    assert locate(settings(), home) == JarLocations(files=(jar,), missing=(SQLITE_JDBC,))


def test_ivy_s_folder_of_the_user_is_the_only_one(home: Path) -> None:
    in_ivy(home / "cache", RUNTIME)
    own = settings(conf={"spark.jars.ivy": str(home / "own")})
    assert locate(own, home).missing == (RUNTIME, SQLITE_JDBC)
    jar = in_ivy(home / "own", RUNTIME)
    assert locate(own, home).files == (jar,)
    assert jar_folders(own) == [home / "own" / "jars"]


def test_a_jar_that_was_cut_off_is_fetched_again(home: Path) -> None:
    jar = in_ivy(home / "cache", RUNTIME)
    jar.write_bytes(jar.read_bytes()[:40])
    assert locate(settings(), home) == JarLocations(missing=(RUNTIME, SQLITE_JDBC))


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({"spark.jars": "/own/iceberg-spark-runtime-4.1_2.13-1.11.0.jar,s3://own/udfs.jar"}, SQLITE_JDBC),
        ({"spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"}, SQLITE_JDBC),
        ({"spark.driver.extraClassPath": "/own/sqlite-jdbc-3.1.jar:/conf"}, RUNTIME),
        ({"spark.jars": "/own/iceberg-spark-runtime-3.5_2.12-1.10.2.jar"}, f"{RUNTIME} {SQLITE_JDBC}"),
    ],
)
def test_a_jar_that_the_user_gives_to_spark_is_not_added(
    home: Path, given: dict[str, str], needed: str
) -> None:
    assert " ".join(locate(settings(conf=given), home).missing) == needed


def test_a_jar_in_the_folder_of_spark_or_on_its_class_path_is_not_added(home: Path) -> None:
    make_jar(home / "spark" / "jars", "iceberg-spark-runtime-4.1_2.13-1.11.0.jar")
    jar = in_ivy(home / "cache", SQLITE_JDBC)
    of_spark = locate(settings(conf={"spark.jars": "/own.jar"}), home, SPARK_HOME=str(home / "spark"))
    on_path = {"spark.jars": "/own.jar", "spark.driver.extraClassPath": f"{home}/spark/jars/*"}
    # The driver must be where Iceberg is, and where the user's jars are.
    assert of_spark == locate(settings(conf=on_path), home) == JarLocations((jar,), (), True, True)


@pytest.mark.parametrize(
    ("given", "loader"),
    [
        ({}, (True, False)),
        ({"master": "yarn"}, (False, True)),
        ({"conf": {"spark.jars": "/own.jar"}}, (False, True)),
        ({"conf": {"spark.jars.packages": "org.apache.iceberg:iceberg-gcp-bundle:1.12.0"}}, (False, True)),
    ],
)
def test_one_loader_has_all_jars(home: Path, given: dict[str, Any], loader: tuple[bool, bool]) -> None:
    """With jars of the user, Spark loads all: a client of a storage is not found from the other loader."""
    located = locate(settings(**given), home)
    assert (located.on_class_path, located.by_spark) == loader


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({}, "~/.cache/icemigrate"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/icemigrate"),
        ({"XDG_CACHE_HOME": "xdg"}, "~/.cache/icemigrate"),
        ({"XDG_CACHE_HOME": "/xdg", CACHE_VARIABLE: "/own"}, "/own"),
    ],
)
def test_the_cache_is_where_the_user_has_it(environ: dict[str, str], folder: str) -> None:
    assert cache_folder(environ) == Path(folder).expanduser()


def test_a_cache_in_the_working_directory_or_without_a_home_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(EngineError, match="ICEMIGRATE_CACHE is not an absolute path: jars"):
        cache_folder({CACHE_VARIABLE: "jars"})
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    with pytest.raises(EngineError, match="no home folder") as caught:
        cache_folder({})
    assert CACHE_VARIABLE in (caught.value.hint or "")


@pytest.mark.parametrize("given_by", ["argument", "environment"])
def test_a_folder_serves_without_a_network(tmp_path: Path, given_by: str) -> None:
    plain = make_jar(tmp_path, "iceberg-spark-runtime-4.1_2.13-1.12.0.jar")
    copied = make_jar(tmp_path, "org.xerial_sqlite-jdbc-3.54.1.0.jar")
    other = make_jar(tmp_path, "own-udfs.jar")
    located = locate_jars(
        settings(jars_dir=tmp_path if given_by == "argument" else None),
        CURRENT,
        {JARS_VARIABLE: str(tmp_path)} if given_by == "environment" else {},
    )
    assert located == JarLocations(files=(plain, copied, other))


def of_folder(folder: Path, *packages: str) -> SparkSettings:
    return SparkSettings("lake", {"type": "hadoop"}, jars_dir=folder, packages=packages)


def test_of_two_versions_in_the_folder_the_exact_one_is_taken(tmp_path: Path) -> None:
    exact = make_jar(tmp_path, "iceberg-spark-runtime-4.1_2.13-1.12.0.jar")
    make_jar(tmp_path, "iceberg-spark-runtime-4.1_2.13-1.11.0.jar")
    assert locate_jars(of_folder(tmp_path), CURRENT).files == (exact,)


def test_another_version_in_the_folder_is_its_owners_choice(tmp_path: Path) -> None:
    older = make_jar(tmp_path, "iceberg-spark-runtime-4.1_2.13-1.11.0.jar")
    assert locate_jars(of_folder(tmp_path), CURRENT).files == (older,)


def test_the_folder_must_hold_every_jar(tmp_path: Path) -> None:
    make_jar(tmp_path, "iceberg-spark-runtime-3.5_2.12-1.10.2.jar")
    make_jar(tmp_path, "postgresql-extras-1.0.jar")
    with pytest.raises(EngineError) as caught:
        locate_jars(of_folder(tmp_path, POSTGRES_JDBC), CURRENT)
    lacking = "iceberg-spark-runtime-4.1_2.13-1.12.0.jar, postgresql-42.7.8.jar"
    assert caught.value.message == f"the jars folder {tmp_path} is missing {lacking}"


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="does not exist"):
        locate_jars(of_folder(tmp_path / "gone"), CURRENT)
