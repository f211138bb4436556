"""A Hive metastore on Derby, from the jars in PySpark's wheel: a metastore of Hive 2.3 that Spark knows."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pyspark

from icemigrate.spark import find_java
from icemigrate.versions import CURRENT
from tests.servers.processes import free_ports, run_to_end, running

_OPENED_MODULES = ("java.base/java.lang", "java.base/java.net", "java.base/java.util")
_SECONDS = 60.0

# The metastore creates its own tables, but those of locks only in a mode for tests that refuses locks.
# Columns are those of `TxnDbUtil.prepDb()` in Hive 2.3.
_LOCK_TABLES = """\
    CREATE TABLE TXNS (TXN_ID bigint PRIMARY KEY, TXN_STATE char(1) NOT NULL, TXN_STARTED bigint NOT NULL,
        TXN_LAST_HEARTBEAT bigint NOT NULL, TXN_USER varchar(128) NOT NULL, TXN_HOST varchar(128) NOT NULL);
    CREATE TABLE HIVE_LOCKS (HL_LOCK_EXT_ID bigint NOT NULL, HL_LOCK_INT_ID bigint NOT NULL, HL_TXNID bigint,
        HL_DB varchar(128) NOT NULL, HL_TABLE varchar(128), HL_PARTITION varchar(767),
        HL_LOCK_STATE char(1) NOT NULL, HL_LOCK_TYPE char(1) NOT NULL, HL_LAST_HEARTBEAT bigint NOT NULL,
        HL_ACQUIRED_AT bigint, HL_USER varchar(128) NOT NULL, HL_HOST varchar(128) NOT NULL,
        HL_HEARTBEAT_COUNT integer, HL_AGENT_INFO varchar(128), HL_BLOCKEDBY_EXT_ID bigint,
        HL_BLOCKEDBY_INT_ID bigint, PRIMARY KEY (HL_LOCK_EXT_ID, HL_LOCK_INT_ID));
    CREATE TABLE NEXT_LOCK_ID (NL_NEXT bigint NOT NULL);
    INSERT INTO NEXT_LOCK_ID VALUES (1);
    CREATE TABLE AUX_TABLE (MT_KEY1 varchar(128) NOT NULL, MT_KEY2 bigint NOT NULL, MT_COMMENT varchar(255),
        PRIMARY KEY (MT_KEY1, MT_KEY2));
    EXIT;
    """
_SITE = """\
    <configuration>
      <property><name>hive.async.log.enabled</name><value>false</value></property>
    </configuration>
    """
_LOGGING = """\
    appender.console.type = Console
    appender.console.name = console
    appender.console.layout.type = PatternLayout
    appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1} %m%n
    rootLogger.level = warn
    rootLogger.appenderRef.console.ref = console
    """


@dataclass(frozen=True, slots=True)
class HiveMetastore:
    """Where it listens."""

    port: int

    @property
    def uri(self) -> str:
        """Its address in a project file."""
        return f"thrift://127.0.0.1:{self.port}"


@contextmanager
def hive_metastore() -> Iterator[HiveMetastore]:
    """A new and empty metastore on a free port of 127.0.0.1."""
    folder = Path(tempfile.mkdtemp(prefix="icemigrate-hive-"))
    (port,) = free_ports(1)
    found = HiveMetastore(port)
    try:
        settings = folder / "conf"
        settings.mkdir()
        for name, text in (
            ("hive-site.xml", _SITE),
            ("log4j2.properties", _LOGGING),
            ("locks.sql", _LOCK_TABLES),
        ):
            (settings / name).write_text(dedent(text), encoding="utf-8")
        java = [
            str(find_java.find_java(CURRENT.java).home / "bin" / "java"),
            "-Xmx512m",
            f"-Djava.io.tmpdir={folder}",
            f"-Dderby.stream.error.file={folder}/derby.log",
            "-Dderby.system.durability=test",
            f"-Dlog4j2.configurationFile={settings}/log4j2.properties",
            *(f"--add-opens={module}=ALL-UNNAMED" for module in _OPENED_MODULES),
            "-cp",
            f"{settings}:{Path(pyspark.__file__).parent}/jars/*",
        ]
        database = f"jdbc:derby:{folder}/database;create=true"
        script = [f"-Dij.database={database}", "-Dij.user=APP", "-Dij.password=mine"]
        run_to_end(
            [*java, *script, "org.apache.derby.tools.ij", str(settings / "locks.sql")], folder, _SECONDS
        )
        options = {
            "javax.jdo.option.ConnectionURL": database,
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "datanucleus.connectionPoolingType": "none",
            "hive.metastore.schema.verification": "false",
            # Otherwise it compares columns by position, and refuses to drop one, also from Java.
            "hive.metastore.disallow.incompatible.col.type.changes": "false",
            "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        }
        command = [*java, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]
        for name, value in options.items():
            command += ["--hiveconf", f"{name}={value}"]
        with running(command, folder / "log", lambda: _listens(port), folder=folder):
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _listens(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
