"""A standalone cluster of Spark: a master and workers on 127.0.0.1, from the JARs of PySpark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pyspark

from icemigrate.spark.find_java import find_java
from icemigrate.versions import CURRENT
from tests.servers.processes import free_ports, running

_DEPLOY = "org.apache.spark.deploy"


@contextmanager
def spark_cluster(folder: Path, workers: int) -> Iterator[str]:
    """The address of a cluster, as in ``spark.master``, until the block ends.

    :param folder: for logs, and for the files of executors.
    :param workers: each has one core and 1 GB.
    """
    home = Path(pyspark.__file__).parent
    variables = {
        "JAVA_HOME": str(find_java(CURRENT.java).home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    port, page, *ports = free_ports(2 + 2 * workers)
    master = f"spark://127.0.0.1:{port}"

    def alive() -> int:
        with urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])

    def command(name: str, own_port: int, own_page: int, *options: str) -> list[str | Path]:
        address = ["--host", "127.0.0.1", "--port", str(own_port), "--webui-port", str(own_page)]
        return [home / "bin/spark-class", f"{_DEPLOY}.{name}", *address, *options]

    with ExitStack() as stack:
        started = [(command("master.Master", port, page), "master")]
        for number in range(workers):
            options = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}"), master)
            own = command("worker.Worker", ports[2 * number], ports[2 * number + 1], *options)
            started.append((own, f"worker{number}"))
        for count, (one, name) in enumerate(started):
            stack.enter_context(
                running(
                    one,
                    folder / f"{name}.log",
                    lambda count=count: alive() >= count,  # type: ignore[misc]
                    environment=variables,
                    folder=folder,
                )
            )
        yield master
