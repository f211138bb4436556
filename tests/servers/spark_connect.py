"""A Spark Connect server with Iceberg, from the JARs of PySpark, with the catalog of a project."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyspark

from icemigrate.execution.spark_start import spark_settings
from icemigrate.project import Environment
from icemigrate.project.project_values import SparkConfig
from icemigrate.spark.find_java import find_java
from icemigrate.spark.jars import locate_jars
from icemigrate.spark.session_settings import spark_conf
from icemigrate.versions import CURRENT
from tests.servers.processes import free_ports, running

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass(frozen=True, slots=True)
class ConnectServer:
    """Where it listens, and what it asks for."""

    port: int
    token: str
    pid_file: Path

    @property
    def remote(self) -> str:
        """Its address in a project file; a token without TLS is only accepted from ``localhost``."""
        return f"sc://localhost:{self.port}"

    def kill(self) -> None:
        """End it at once, as a machine that fails would."""
        os.kill(int(self.pid_file.read_text()), signal.SIGKILL)


@contextmanager
def spark_connect(
    environments: Sequence[Environment], folder: Path, token: str, port: int | None = None
) -> Iterator[ConnectServer]:
    """A server on a port of 127.0.0.1, until the block ends.

    :param environments: their catalogs are those of every session.
    :param folder: for its settings, which have the catalogs' credentials, and its log.
    :param port: by default a free one.
    """
    if port is None:
        (port,) = free_ports(1)
    server = ConnectServer(port, token, folder / "pid")
    conf = _conf(environments) | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    file = folder / "server.conf"
    file.touch(mode=0o600)
    file.write_text("".join(f"{key} {value}\n" for key, value in conf.items()), encoding="utf-8")
    home = Path(pyspark.__file__).parent
    submit = [home / "bin/spark-submit", "--properties-file", file, "--class", _CLASS, "spark-internal"]
    script = 'echo $$ >"$0" && exec "$@"'
    variables = {
        "JAVA_HOME": str(find_java(CURRENT.java).home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
    }

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    command: list[str | Path] = ["bash", "-c", script, server.pid_file, *submit]
    with running(command, folder / "server.log", answers, environment=variables, folder=folder):
        yield server


def _conf(environments: Sequence[Environment]) -> dict[str, str]:
    """The settings of Spark and its catalogs, with all JARs on the class path."""
    conf, jars = dict[str, str](), dict[Path, None]()
    for environment in environments:
        settings = spark_settings(replace(environment, spark=SparkConfig()))
        located = locate_jars(settings, CURRENT)
        conf |= spark_conf(settings, located)
        jars |= dict.fromkeys(located.files)
        # The catalog of a server keeps tables in memory, as it does by default.
        del conf[f"spark.sql.catalog.{settings.catalog_name}.cache-enabled"]
    return conf | {
        "spark.master": "local[2]",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
    }
