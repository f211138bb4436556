"""Changes of rows that only Spark makes: row ids of format version 3, merge-on-read, and equality deletes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from icemigrate.errors import UsageError
from icemigrate.execution.spark_start import LazySpark
from icemigrate.frozen import replace
from icemigrate.iceberg.partitioning import UNPARTITIONED, UNSORTED
from icemigrate.spark.interruptible_call import call_interruptibly
from icemigrate.spark_sql.identifiers import quote, table_sql
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import load_target
from icemigrate.table_data.parquet_output import write_parquet
from icemigrate.table_data.row_expressions import RowExpression
from icemigrate.table_data.spark_expressions import spark_condition, spark_value
from icemigrate.table_data.table_session import CurrentTable, TableSession

if TYPE_CHECKING:
    from icemigrate.spark.spark_engine import SparkEngine
    from icemigrate.table_data.row_changes import RowChangeOutcome
    from icemigrate.table_data.upsert_rows import StagedRows

NoteSpark: TypeAlias = Callable[[str], None]
"""Takes the reason for which Spark starts: a sentence."""
_VIEW = "icemigrate_upsert_data"


def no_note(_reason: str) -> None:
    """Show nothing."""


def delete_in_spark(
    session: TableSession, table: CurrentTable, condition: RowExpression, reason: str
) -> RowChangeOutcome:
    """Delete rows.

    :param condition: of DuckDB's SQL.
    :raises UsageError: Spark may read the condition differently.
    """
    where = spark_condition(condition.text, load_target(table).columns, "--where")
    engine, name = _engine(session), _table(session, table)
    count = _count(engine, f"SELECT count(*) FROM {name} WHERE {where}")
    if not count:
        return _changed(session, table, reason, {}, is_changed=False)
    _run(engine, table, f"DELETE FROM {name} WHERE {where}")
    return _changed(session, table, reason, {"deleted": count})


def update_in_spark(
    session: TableSession,
    table: CurrentTable,
    values: Mapping[str, RowExpression],
    condition: RowExpression,
    reason: str,
) -> RowChangeOutcome:
    """Set columns.

    :param values: of DuckDB's SQL, as the condition.
    :raises UsageError: Spark may read an expression differently.
    """
    target = load_target(table)
    where = spark_condition(condition.text, target.columns, "--where")
    assigned = ", ".join(
        f"{quote(column)} = {spark_value(value.text, target.columns, target.column(column))}"
        for column, value in values.items()
    )
    engine, name = _engine(session), _table(session, table)
    count = _count(engine, f"SELECT count(*) FROM {name} WHERE {where}")
    if not count:
        return _changed(session, table, reason, {}, is_changed=False)
    _run(engine, table, f"UPDATE {name} SET {assigned} WHERE {where}")
    return _changed(session, table, reason, {"updated": count})


def merge_in_spark(
    session: TableSession, table: CurrentTable, db: LoadDatabase, staged: StagedRows, reason: str
) -> RowChangeOutcome:
    """Update and insert the rows of a table of DuckDB, which Spark reads from a temporary file."""
    target = load_target(table)
    columns = [quote(column.name) for column in target.columns]
    # One file for Spark: neither partitions nor an order.
    plain = replace(target, spec=UNPARTITIONED, order=UNSORTED)
    files = write_parquet(db, f"SELECT * FROM {staged.table}", plain, is_checked=True)
    engine, name = _engine(session), _table(session, table)
    spark: Any = engine.session
    spark.read.parquet(*(str(file.path) for file in files)).createOrReplaceTempView(_VIEW)
    try:
        matches = " AND ".join(f"t.{quote(key)} = s.{quote(key)}" for key in staged.keys)
        parts = [f"t.{quote(c)} <=> s.{quote(c)}" for c in staged.values]
        differs = f"NOT ({' AND '.join(parts) or 'true'})"
        joined = f"{name} t JOIN {_VIEW} s ON {matches}"
        keys = ", ".join(f"s.{quote(key)}" for key in staged.keys)
        total = _count(engine, f"SELECT count(*) FROM {_VIEW}")
        there = _count(engine, f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM {joined})")
        updated = _count(engine, f"SELECT count(*) FROM {joined} WHERE {differs}")
        changed = _count(
            engine, f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM {joined} WHERE {differs})"
        )
        counts = {"inserted": total - there, "updated": updated, "unchanged": there - changed}
        if not (counts["inserted"] or updated):
            return _changed(session, table, reason, counts, is_changed=False)
        assigned = ", ".join(f"t.{quote(c)} = s.{quote(c)}" for c in staged.values)
        update = f"WHEN MATCHED AND {differs} THEN UPDATE SET {assigned} " if assigned else ""
        _run(
            engine,
            table,
            f"MERGE INTO {name} t USING {_VIEW} s ON {matches} {update}"
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) "
            f"VALUES ({', '.join(f's.{column}' for column in columns)})",
        )
        return _changed(session, table, reason, counts)
    finally:
        spark.catalog.dropTempView(_VIEW)


def _engine(session: TableSession) -> SparkEngine:
    engine = LazySpark(session.environment, None, lambda: None)()
    engine.session.conf.set("spark.sql.session.timeZone", "UTC")
    return engine


def _run(engine: SparkEngine, table: CurrentTable, statement: str) -> None:
    what = f"Changing rows of {table.declared}"
    call_interruptibly(engine.session.sparkContext, what, lambda: engine.sql(statement))


def _table(session: TableSession, table: CurrentTable) -> str:
    return table_sql(session.environment.catalog.settings.name, table.name)


def _count(engine: SparkEngine, query: str) -> int:
    ((count,),) = engine.ask(query)
    return int(count)


def _changed(
    session: TableSession,
    before: CurrentTable,
    reason: str,
    counts: Mapping[str, int],
    *,
    is_changed: bool = True,
) -> RowChangeOutcome:
    """What Spark did, by the summary of its snapshot."""
    from icemigrate.table_data.row_changes import RowChangeOutcome

    if not is_changed:
        return replace(RowChangeOutcome(spark_reason=reason), **counts)
    metadata = session.load(str(before.declared)).metadata
    current = metadata.get("current-snapshot-id")
    if current == before.metadata.get("current-snapshot-id"):
        raise UsageError(f"Spark made no snapshot of table `{before.declared}`", "run the command again")
    summary = next(s for s in metadata["snapshots"] if s["snapshot-id"] == current).get("summary") or {}
    done = RowChangeOutcome(
        snapshot_id=current,
        files_removed=int(summary.get("deleted-data-files", 0)),
        files_added=int(summary.get("added-data-files", 0)),
        spark_reason=reason,
    )
    return replace(done, **counts)
