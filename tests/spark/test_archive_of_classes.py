"""A class-data archive made by real JVMs: by two at once, used, and broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from icemigrate.spark.class_archive import VARIABLE, ClassArchive
from icemigrate.spark.jars import locate_jars
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.versions import CURRENT

_START = """
import sys
from pathlib import Path
from icemigrate.spark import class_archive, session, session_settings as settings
class_archive.make_later = lambda kept, *rest: None
folder = Path(sys.argv[1])
conf = settings.sqlite_catalog_conf(folder / "c.db", folder / "w")
spark = session.start_spark(settings.SparkSettings("local", conf))
java = spark._jvm.java.lang
arguments = java.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
kept = [a.partition("=")[2] for a in arguments if a.startswith("-XX:SharedArchiveFile")]
with open(f"/proc/{java.ProcessHandle.current().pid()}/maps") as maps:
    kept = kept if kept and kept[0] in maps.read() else []  # Java names an archive that it ignores, too
print(kept[0] if kept else "none", spark.sql("SHOW NAMESPACES IN local").count())
"""
_ORDER = """
import json
from pathlib import Path
from icemigrate.spark import find_java, jars, session
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.versions import CURRENT
import pyspark
found = find_java.find_java(CURRENT.java)
settings = SparkSettings("local", sqlite_catalog_conf(Path("/c.db"), Path("/w")))
located = jars.locate_jars(settings, CURRENT)
kept = session._archive(settings, located, found, pyspark.__version__)
order = {"path": str(kept.path), "jars": [str(f) for f in located.files], "on_class_path": True}
print(json.dumps(order | {"java": str(found.home)}))
"""


def _python(cache: Path, program: str, *arguments: str) -> str:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), VARIABLE: ""}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout.strip()


def test_an_archive_is_made_once_used_and_left_when_it_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_jvm: object
) -> None:
    assert spark_jvm is not None, "it has fetched the jars"
    settings = SparkSettings("local", sqlite_catalog_conf(tmp_path / "c.db", tmp_path / "w"))
    (tmp_path / "icemigrate" / "jars").mkdir(parents=True)
    for jar in locate_jars(settings, CURRENT).files:
        (tmp_path / "icemigrate" / "jars" / jar.name).symlink_to(jar)
    order = json.loads(_python(tmp_path, _ORDER))
    archive = ClassArchive(Path(order["path"]))
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "JAVA_HOME": order["java"]}
    makers = [
        subprocess.Popen(
            [sys.executable, "-m", "icemigrate.spark.class_archive_creator", json.dumps(order)],
            env=environment,
        )
        for _ in range(2)
    ]
    assert [maker.wait(timeout=900) for maker in makers] == [0, 0]
    files = (path for path in archive.path.parent.iterdir() if path.is_file())
    assert sorted(path.suffix for path in files) == [".jsa", ".json", ".lock"]
    assert _python(tmp_path, _START, str(tmp_path)) == f"{archive.path} 0"

    # Broken in the middle, so that its note still fits, and read only when the JVM maps it.
    content = archive.path.read_bytes()
    broken = archive.path.with_suffix(".broken")
    broken.write_bytes(content[:4096] + bytes(len(content) // 2))
    archive.seal(broken)
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    assert _python(tmp_path, _START, str(tmp_path)).endswith(" 0")
    assert set(tmp_path.iterdir()) == before | {tmp_path / "c.db"}
