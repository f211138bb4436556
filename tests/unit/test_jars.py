from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from icemigrate.engine import jars
from icemigrate.errors import EngineError
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
    assert jars.needed(CURRENT, conf) == (RUNTIME, *further)


def test_what_ivy_has_is_taken_from_there_and_the_rest_is_fetched(tmp_path: Path) -> None:
    jar = in_ivy(tmp_path, RUNTIME)
    located = jars.locate((RUNTIME, SQLITE_JDBC), extra=("a:b:1",), ivy_dir=tmp_path, environ={})
    assert located == jars.Jars(files=(jar,), packages=(SQLITE_JDBC, "a:b:1"))


def test_a_jar_that_was_cut_off_is_fetched_again(tmp_path: Path) -> None:
    jar = in_ivy(tmp_path, RUNTIME)
    jar.write_bytes(jar.read_bytes()[:40])
    assert jars.locate((RUNTIME,), ivy_dir=tmp_path, environ={}) == jars.Jars(packages=(RUNTIME,))


@pytest.mark.parametrize("given_by", ["argument", "environment"])
def test_a_folder_serves_without_a_network(tmp_path: Path, given_by: str) -> None:
    plain = make_jar(tmp_path, "iceberg-spark-runtime-4.1_2.13-1.12.0.jar")
    copied = make_jar(tmp_path, "org.xerial_sqlite-jdbc-3.54.1.0.jar")
    other = make_jar(tmp_path, "own-udfs.jar")
    located = jars.locate(
        (RUNTIME, SQLITE_JDBC),
        jars_dir=tmp_path if given_by == "argument" else None,
        environ={"ICEMIGRATE_JARS": str(tmp_path)} if given_by == "environment" else {},
    )
    assert located == jars.Jars(files=(plain, copied, other))


def test_of_two_versions_in_the_folder_the_exact_one_is_taken(tmp_path: Path) -> None:
    exact = make_jar(tmp_path, "iceberg-spark-runtime-4.1_2.13-1.12.0.jar")
    make_jar(tmp_path, "iceberg-spark-runtime-4.1_2.13-1.11.0.jar")
    assert jars.locate((RUNTIME,), jars_dir=tmp_path, environ={}).files == (exact,)


def test_another_version_in_the_folder_is_its_owners_choice(tmp_path: Path) -> None:
    older = make_jar(tmp_path, "iceberg-spark-runtime-4.1_2.13-1.11.0.jar")
    assert jars.locate((RUNTIME,), jars_dir=tmp_path, environ={}).files == (older,)


def test_the_folder_must_hold_every_jar(tmp_path: Path) -> None:
    make_jar(tmp_path, "iceberg-spark-runtime-3.5_2.12-1.10.2.jar")
    make_jar(tmp_path, "postgresql-extras-1.0.jar")
    with pytest.raises(EngineError) as caught:
        jars.locate((RUNTIME, POSTGRES_JDBC), jars_dir=tmp_path, environ={})
    lacking = "iceberg-spark-runtime-4.1_2.13-1.12.0.jar, postgresql-42.7.8.jar"
    assert caught.value.message == f"the folder for jars {tmp_path} lacks {lacking}"


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="does not exist"):
        jars.locate((RUNTIME,), jars_dir=tmp_path / "gone", environ={})
