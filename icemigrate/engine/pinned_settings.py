"""Settings of a Spark session that change what a statement does, and the values that our statements need.

A session may be the user's own, and a project file may set anything.  A setting of this list makes a
statement write elsewhere, write something else, or read something else, without an error.  So each statement
runs with the values below, and the session has its own values again afterwards.

Other settings are left alone.  ``spark.sql.caseSensitive`` only decides whether a statement fails.
``spark.sql.session.timeZone`` is part of what a user's expression means; the timestamps that icemigrate
itself writes into statements have an offset.  ``spark.sql.iceberg.distribution-mode``, compression, split
sizes and planning modes change files and speed, not rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PINNED: Mapping[str, str | None] = {
    # Stage what is written to a table with `write.wap.enabled`, or move reads and writes to another branch.
    "spark.wap.id": None,
    "spark.wap.branch": None,
    # Values that do not fit become null or wrap around instead of being an error.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # `INSERT OVERWRITE` of all rows replaces only some partitions.
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    # A backslash in a string literal means itself.
    "spark.sql.parser.escapedStringLiterals": "false",
    # Nulls come into required columns, fields are written by another order, or a write changes the schema.
    "spark.sql.iceberg.check-nullability": "true",
    "spark.sql.iceberg.check-ordering": "true",
    "spark.sql.iceberg.merge-schema": "false",
    # `${…}` in a statement, in a quoted name too, is replaced.
    "spark.sql.variable.substitute": "false",
}
"""The settings by name; ``None`` means that the session has none."""


def pin(session: SparkSession) -> dict[str, str | None]:
    """Give the session the pinned values.

    :returns: what it had instead, by name; ``None`` where it had no value.
    """
    had = {key: session.conf.get(key, None) for key in PINNED}
    changed = {key: value for key, value in had.items() if value != PINNED[key]}
    for key in changed:
        _set(session, key, PINNED[key])
    return changed


@contextmanager
def pinned(session: SparkSession) -> Iterator[None]:
    """A block in which the session has the pinned values."""
    changed = pin(session)
    try:
        yield
    finally:
        for key, value in changed.items():
            _set(session, key, value)


def _set(session: SparkSession, key: str, value: str | None) -> None:
    if value is None:
        session.conf.unset(key)
    else:
        session.conf.set(key, value)
