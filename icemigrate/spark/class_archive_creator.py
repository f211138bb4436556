"""The process that creates a class-data archive: ``python -m icemigrate.spark.class_archive_creator ORDER``.

It starts the same Spark as a command, runs the usual operations once, on a catalog in a scratch folder, and
lets the JVM write the classes that it has loaded.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from icemigrate.spark.class_archive import ClassArchive, remove_old_archives
from icemigrate.spark.jars import JarLocations
from icemigrate.spark.session import start_to_archive, stop_spark
from icemigrate.spark.session_settings import SparkSettings

_CATALOG = "scratch"
_STATEMENTS = (
    "CREATE NAMESPACE {0}.n",
    "CREATE TABLE {0}.n.t (id BIGINT NOT NULL, at TIMESTAMP, name STRING, s STRUCT<a: INT>) USING iceberg "
    "PARTITIONED BY (days(at)) COMMENT 'c' TBLPROPERTIES ('format-version' = '2')",
    "ALTER TABLE {0}.n.t ADD COLUMNS (price DECIMAL(18, 6) COMMENT 'c' AFTER id, s.b STRING)",
    "ALTER TABLE {0}.n.t RENAME COLUMN name TO label",
    "ALTER TABLE {0}.n.t ALTER COLUMN s.a TYPE BIGINT",
    "ALTER TABLE {0}.n.t ALTER COLUMN label FIRST",
    "ALTER TABLE {0}.n.t ALTER COLUMN id DROP NOT NULL",
    "ALTER TABLE {0}.n.t ADD PARTITION FIELD bucket(4, id) AS b",
    "ALTER TABLE {0}.n.t REPLACE PARTITION FIELD b WITH bucket(8, id)",
    "ALTER TABLE {0}.n.t WRITE LOCALLY ORDERED BY at",
    "ALTER TABLE {0}.n.t SET TBLPROPERTIES ('a' = 'b')",
    "ALTER TABLE {0}.n.t UNSET TBLPROPERTIES ('a')",
    "ALTER TABLE {0}.n.t DROP COLUMN price",
    "ALTER TABLE {0}.n.t RENAME TO n.u",
    "SHOW TABLES IN {0}.n",
)


def create_archive(order: dict[str, Any]) -> None:
    """Make the archive that an order names, unless another process does or did."""
    archive = ClassArchive(Path(order["path"]))
    with archive.claim() as made:
        if made is None:
            return
        os.nice(19)
        jars, on_class_path = tuple(map(Path, order["jars"])), order["on_class_path"]
        _run(made, JarLocations(jars, (), on_class_path, not on_class_path))
        if made.exists():  # a JVM that cannot write an archive only warns of it
            archive.seal(made)
            remove_old_archives(archive)


def _run(made: Path, located: JarLocations) -> None:
    from icemigrate.iceberg.names import TableName
    from icemigrate.spark.spark_engine import SparkEngine

    with tempfile.TemporaryDirectory(prefix="icemigrate-archive-") as folder:
        # A catalog of files needs no driver, whatever catalog the jars are for.
        conf = {"type": "hadoop", "warehouse": folder}
        session = start_to_archive(SparkSettings(_CATALOG, conf), located, made)
        for statement in _STATEMENTS:
            # Unsupported operations of a catalog of files (rename) load their classes all the same.
            with contextlib.suppress(Exception):
                session.sql(statement.format(_CATALOG))
        with contextlib.suppress(Exception):
            SparkEngine(session, _CATALOG).table(TableName(("n",), "t"))
        stop_spark(session, seconds=300)


if __name__ == "__main__":
    create_archive(json.loads(sys.argv[1]))
