"""Compact the data files of one table: Spark writes small files, and files with deleted rows, anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from icemigrate.execution.connect_start import open_connect_engine, uses_connect
from icemigrate.execution.spark_start import LazySpark
from icemigrate.frozen import replace
from icemigrate.results.snapshot_results import CompactResult
from icemigrate.spark.interruptible_call import call_interruptibly
from icemigrate.spark_sql.identifiers import path_sql, quote
from icemigrate.spark_sql.literals import string_sql
from icemigrate.table_data.file_lists import open_files, snapshot_or_current
from icemigrate.table_data.live_files import DATA
from icemigrate.table_data.one_expression import CONDITION, SPARK, require_one_expression
from icemigrate.table_data.table_session import TableSession
from icemigrate.table_data.writable_tables import load_for_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPTIONS = {"delete-file-threshold": "1", "remove-dangling-deletes": "true"}
"""Data files with deleted rows are rewritten whatever their size; delete files without data files go."""


def plan_compaction(tables: TableSession, name: str, *, where: str | None = None) -> CompactResult:
    """The statement of :func:`compact`, and the files that it looks at; changes nothing.

    :param where: a condition of Spark SQL; only files that may have such rows are rewritten.
    :raises UsageError: there is no such table, or the condition is not one expression.
    :raises MetadataError: a manifest cannot be read.
    """
    table = load_for_rows(tables, name)
    if where is not None:
        require_one_expression(where, "--where", CONDITION, SPARK)
    # Counted one by one: a table may have millions of files.
    counts = Counter(file.content for file in open_files(tables, table).of(snapshot_or_current(table, None)))
    options = ", ".join(f"{string_sql(key)}, {string_sql(value)}" for key, value in _OPTIONS.items())
    parts = [f"table => {string_sql(path_sql((*table.name.namespace, table.name.name)))}"]
    parts += [] if where is None else [f"where => {string_sql(where)}"]
    parts.append(f"options => map({options})")
    catalog = quote(tables.environment.environment.catalog.name)
    return CompactResult(
        table=str(table.declared),
        name=str(table.name),
        statement=f"CALL {catalog}.system.rewrite_data_files({', '.join(parts)})",
        data_files=counts[DATA],
        delete_files=counts.total() - counts[DATA],
    )


def compact(
    tables: TableSession,
    name: str,
    *,
    where: str | None = None,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> CompactResult:
    """Rewrite small data files, and data files with deleted rows; rows do not change.

    Spark does it, because it sorts and writes gigabytes in parallel: it is started unless a session is given.
    Ctrl-C and ``SIGTERM`` cancel Spark's jobs, unless the commit has begun.

    :param name: of the table, as migration files write it.
    :param where: a condition of Spark SQL; only files that may have such rows are rewritten.
    :param spark: a running session.
    :param on_start: called right before Spark is started.
    :raises UsageError: there is no such table, or the condition is not one expression.
    :raises EngineError: Spark failed, or does not understand the condition; rows are unchanged.
    """
    plan = plan_compaction(tables, name, where=where)
    if not plan.data_files:
        return replace(plan, done=True)
    session = tables.environment
    if uses_connect(session.environment, spark):
        ((rewritten, added, size, *_),) = open_connect_engine(session, spark, on_start).ask(plan.statement)
    else:
        engine = LazySpark(session, spark, on_start)()
        ((rewritten, added, size, *_),) = call_interruptibly(
            engine.session.sparkContext,
            f"Rewriting data files of {plan.table}",
            lambda: engine.ask(plan.statement),
        )
    return replace(
        plan,
        rewritten_files=int(rewritten),
        added_files=int(added),
        rewritten_bytes=int(size),
        snapshot_id=tables.load(name).metadata.get("current-snapshot-id"),
        done=True,
    )
