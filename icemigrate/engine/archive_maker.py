"""The process that makes a class-data archive: ``python -m icemigrate.engine.archive_maker ORDER``.

It starts the same Spark as a command would, does once what commands do, on a catalog in a scratch folder, and
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

from icemigrate.engine.archive import Archive, sweep
from icemigrate.engine.jars import Jars
from icemigrate.engine.session import start_to_archive, stop
from icemigrate.engine.settings import SparkSettings

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


def make(order: dict[str, Any]) -> None:
    """Make the archive that an order names, unless somebody else does or has."""
    archive = Archive(Path(order["path"]))
    if archive.is_sound() or not archive.claim():
        return
    made = archive.path.with_suffix(f".{os.getpid()}")
    try:
        os.nice(19)
        _run(made, tuple(Path(jar) for jar in order["jars"]))
        archive.seal(made)
        sweep(archive)
    finally:
        made.unlink(missing_ok=True)
        archive.lock.unlink(missing_ok=True)


def _run(made: Path, jars: tuple[Path, ...]) -> None:
    from icemigrate.engine.spark import SparkEngine
    from icemigrate.model.names import TableName

    with tempfile.TemporaryDirectory(prefix="icemigrate-archive-") as folder:
        # A catalog of files needs no driver, whatever catalog the jars are for.
        conf = {"type": "hadoop", "warehouse": folder}
        session = start_to_archive(SparkSettings(_CATALOG, conf), Jars(jars), made)
        for statement in _STATEMENTS:
            # What a catalog of files cannot do (rename) loads its classes all the same.
            with contextlib.suppress(Exception):
                session.sql(statement.format(_CATALOG))
        with contextlib.suppress(Exception):
            SparkEngine(session, _CATALOG).table(TableName(("n",), "t"))
        stop(session, seconds=300)


if __name__ == "__main__":
    make(json.loads(sys.argv[1]))
