"""What keeping tables tidy asks of Spark and of Iceberg's Java library; each act stands on its own."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from icemigrate.engine.explain import explained
from icemigrate.engine.spark import SparkEngine
from icemigrate.errors import EngineError
from icemigrate.model.names import Path, TableName
from icemigrate.sql.literals import string_sql
from icemigrate.sql.names import path_sql, table_sql

_LISTED_BY_SPARK = ("", "file", "hdfs")
"""Schemes whose folders Hadoop lists without more ado; others are listed by the table's own ``FileIO``."""


def purge_text(name: TableName) -> str:
    """How :func:`purge` is shown."""
    return f"catalog.dropTable({name}, purge = true)"


def purge(engine: SparkEngine, name: TableName) -> None:
    """Drop a table for good, with its files.

    Through the catalog itself: SQL catalogs delete every file that the table's metadata leads to, a REST
    server is asked to do it (``purgeRequested``).

    :raises EngineError: the catalog did not do it.
    """
    with explained():
        engine.java.catalog.dropTable(engine.java.identifier(name), True)
    if engine.metadata_location(name) is not None:
        raise EngineError(f"the catalog still has `{name}` after it was dropped")


def expire_sql(catalog: str, name: TableName, before: datetime) -> str:
    """The call that expires snapshots by the table's own properties.

    :param before: what is younger stays.  Iceberg would count the table's age from the moment of the call,
        and so take more than was shown.
    """
    arguments = f"table => {_argument(name)}, older_than => {_timestamp_sql(before)}"
    return f"CALL {path_sql((catalog,))}.system.expire_snapshots({arguments})"


def expire(engine: SparkEngine, name: TableName, before: datetime) -> int:
    """Expire snapshots, and delete the files that only they need.

    :param before: what is younger stays.
    :returns: how many files were deleted.
    :raises EngineError: Spark failed.
    """
    (row,) = _rows(engine, expire_sql(engine.catalog_name, name, before))
    return sum(count for column, count in row.items() if column.startswith("deleted_") and count)


def delete_sql(catalog: str, name: TableName, column: Path, type_: str, before: datetime) -> str:
    """The statement that deletes rows; those without a value stay.

    :param type_: of the column: ``date``, ``timestamp`` or ``timestamptz``.
    :param before: in UTC; a timestamp without zone is taken for one in UTC too.
    """
    keyword = {"date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}[type_]
    literal = f"{keyword} '{_moment(type_, before, ' ')}'"
    # A whole partition is dropped where its value is before the moment, and there null counts as before it
    # (seen with Iceberg 1.12 on a table by `day(at)`): rows without a value would go too.
    where = f"{path_sql(column)} IS NOT NULL AND {path_sql(column)} < {literal}"
    return f"DELETE FROM {table_sql(catalog, name)} WHERE {where}"


def old_rows(
    engine: SparkEngine, name: TableName, column: Path, type_: str, before: datetime
) -> tuple[int, int]:
    """How many files may hold rows from before a moment, by the manifests, and how many rows these have.

    :returns: files and rows; none of the rows of other files is that old.
    :raises EngineError: there is no such table, or a manifest cannot be read.
    """
    files = rows = 0
    with explained():
        said = engine.java.iceberg.expressions.Expressions
        path = ".".join(column)
        older = getattr(said, "and")(said.notNull(path), said.lessThan(path, _moment(type_, before, "T")))
        tasks = engine.java.table(name).newScan().filter(older).planFiles()
        try:
            found = tasks.iterator()
            while found.hasNext():
                files += 1
                rows += found.next().file().recordCount()
        finally:
            tasks.close()
    return files, rows


def orphans_sql(catalog: str, name: TableName, before: datetime, location: str, *, dry_run: bool) -> str:
    """The call that removes files that the table does not know.

    :param before: files that are younger stay.
    :param location: of the table; object stores are listed by the table's own ``FileIO``.
    """
    parts = [f"table => {_argument(name)}", f"older_than => {_timestamp_sql(before)}"]
    scheme = location.partition(":")[0] if ":" in location else ""
    if scheme not in _LISTED_BY_SPARK:
        parts.append("prefix_listing => true")
    if dry_run:
        parts.append("dry_run => true")
    return f"CALL {path_sql((catalog,))}.system.remove_orphan_files({', '.join(parts)})"


def orphans(
    engine: SparkEngine, name: TableName, before: datetime, location: str, *, dry_run: bool
) -> tuple[str, ...]:
    """Remove orphan files, or with ``dry_run`` only find them.

    :returns: where they are, or were.
    :raises EngineError: Spark failed.
    """
    text = orphans_sql(engine.catalog_name, name, before, location, dry_run=dry_run)
    return tuple(sorted(str(row["orphan_file_location"]) for row in _rows(engine, text)))


def _rows(engine: SparkEngine, text: str) -> list[dict[str, Any]]:
    with explained(), engine.pinned():
        return [row.asDict() for row in engine.session.sql(text).collect()]


def _argument(name: TableName) -> str:
    """A table's name in the string that a procedure takes."""
    return string_sql(path_sql((*name.namespace, name.name)))


def _timestamp_sql(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}+00:00'"


def _moment(type_: str, moment: datetime, between: str) -> str:
    """A moment as text for a column of a type.

    :param between: what stands between day and time.
    """
    utc = moment.astimezone(timezone.utc)
    if type_ == "date":
        return f"{utc:%Y-%m-%d}"
    return f"{utc:%Y-%m-%d}{between}{utc:%H:%M:%S}{'+00:00' if type_ == 'timestamptz' else ''}"
