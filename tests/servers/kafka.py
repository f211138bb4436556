"""A broker of Kafka, alone in its cluster; its programs come from Maven by the Ivy that PySpark brings."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from icemigrate.spark import find_java
from icemigrate.versions import CURRENT
from tests.servers.processes import free_ports, run_to_end, running

VERSION = "4.1.1"
_SECONDS = 300.0
_IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
_IVY = f"""\
<ivy-module version="2.0">
  <info organisation="icemigrate" module="kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{VERSION}" conf="default->default"/>
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True, slots=True)
class Kafka:
    """Where it listens."""

    server: str

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""
        client = KafkaAdminClient(bootstrap_servers=self.server)
        try:
            client.create_topics([NewTopic(name, partitions, 1)])
        finally:
            client.close()

    def send(self, topic: str, records: Iterable[tuple[bytes | None, Sequence[tuple[str, bytes]]]]) -> None:
        """Append records with headers, until the broker has them."""
        producer = KafkaProducer(bootstrap_servers=self.server)
        try:
            sent = [producer.send(topic, value, headers=list(headers)) for value, headers in records]
            for one in sent:
                one.get(_SECONDS)
        finally:
            producer.close()

    def answers(self) -> bool:
        """Whether it serves."""
        host, _, port = self.server.partition(":")
        with socket.create_connection((host, int(port)), timeout=5):
            return True


@contextmanager
def kafka() -> Iterator[Kafka]:
    """A new one on a free port of 127.0.0.1, without topics."""
    folder = Path(tempfile.mkdtemp(prefix="icemigrate-kafka-"))
    try:
        program = find_java.find_java(CURRENT.java).home / "bin" / "java"
        _fetch(folder, program)
        port, controller = free_ports(2)
        settings = folder / "server.properties"
        settings.write_text(
            f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder / "data"}
offsets.topic.replication.factor=1
""",
            encoding="utf-8",
        )
        words = [
            program,
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{folder}/jars/*",
        ]
        format_words = ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAQACAAAAAAAAAAA", "-c", settings]
        run_to_end([*words, *format_words], folder, _SECONDS)
        found = Kafka(f"127.0.0.1:{port}")
        with running([*words, "kafka.Kafka", settings], folder / "log", found.answers, folder=folder):
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fetch(folder: Path, program: Path) -> None:
    """Bring the broker's jars into the folder; downloads are kept by Ivy."""
    (folder / "ivy.xml").write_text(_IVY, encoding="utf-8")
    (folder / "ivysettings.xml").write_text(_IVY_SETTINGS, encoding="utf-8")
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    words: list[str | Path] = [program, "-cp", ivy, "org.apache.ivy.Main"]
    words += ["-settings", folder / "ivysettings.xml", "-ivy", folder / "ivy.xml"]
    words += ["-retrieve", f"{folder}/jars/[artifact]-[revision].[ext]"]
    run_to_end(words, folder, _SECONDS)
