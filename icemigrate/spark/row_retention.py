"""Retention of rows: old rows are deleted on a branch of the run, which one commit publishes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from icemigrate.changes.publish_rows import PublishRows
from icemigrate.errors import ConflictError, EngineError, HeadMoved
from icemigrate.frozen import replace
from icemigrate.iceberg.names import FieldPath, TableName
from icemigrate.iceberg.ref_names import is_maintain_branch_of, maintain_branch_name
from icemigrate.iceberg.table import Ref, Table
from icemigrate.spark.commit_ports import CommittingEngine
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.maintenance_calls import guard_of, require_same
from icemigrate.spark.row_branches import require_published, require_table, retry_until_published
from icemigrate.spark_sql.branch_statements import branch_sql
from icemigrate.spark_sql.identifiers import path_sql, table_sql


def delete_sql(
    catalog: str, name: TableName, column: FieldPath, type_: str, before: datetime, branch: str | None = None
) -> str:
    """The statement that deletes rows; rows without a value stay.

    :param branch: the branch on which it deletes them; ``None`` for the main branch, as it is shown.
    :param type_: of the column: ``date``, ``timestamp`` or ``timestamptz``.
    :param before: in UTC; also for a timestamp without zone.
    """
    keyword = {"date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}[type_]
    literal = f"{keyword} '{_moment(type_, before, ' ')}'"
    # A whole partition is dropped where its value is before the limit, and there null counts as before it
    # (seen with Iceberg 1.12 on a table by `day(at)`): rows without a value would be deleted too.
    where = f"{path_sql(column)} IS NOT NULL AND {path_sql(column)} < {literal}"
    rows = table_sql(catalog, name) if branch is None else branch_sql(catalog, name, branch)
    return f"DELETE FROM {rows} WHERE {where}"


def delete_rows(
    engine: CommittingEngine,
    name: TableName,
    uuid: str | None,
    column: FieldPath,
    type_: str,
    before: datetime,
) -> int | None:
    """Delete rows on a branch of this run, and publish the branch with a commit.

    Spark's statement loads the table itself and commits on its current state, so a late one must only find a
    branch that no other process knows.

    :returns: the number of deleted rows; ``None`` where the snapshot does not have it.
    :raises LockLost: this process does not hold the lock any more; main has all rows.
    :raises EngineError: Spark failed, or others wrote to the table at every attempt.
    """
    by = guard_of(engine)
    branch = maintain_branch_name(by.project, by.run)
    text = delete_sql(engine.catalog_name, name, column, type_, before, branch)
    numbers: list[int | None] = []
    try:
        retry_until_published(name, lambda _: _deleted(engine, name, uuid, branch, text, numbers))
    except Exception:
        with suppress(EngineError):  # the next process drops it, too
            engine.commit(name, lambda table: _without_branches(table, by.project))
        raise
    return numbers[-1] if numbers else None


def _deleted(
    engine: CommittingEngine,
    name: TableName,
    uuid: str | None,
    branch: str,
    text: str,
    numbers: list[int | None],
) -> bool:
    """Delete rows on the branch and publish it; returns whether it is published, because others may have
    moved main.

    :param numbers: gets the number of deleted rows.
    """
    project = guard_of(engine).project
    require_same(engine, name, uuid)

    def branched(table: Table) -> Table:
        table = _without_branches(table, project)
        if table.snapshot is None:
            raise ConflictError(f"table `{name}` no longer has rows", "run `icemigrate maintain` again")
        return replace(table, refs={**table.refs, branch: Ref("branch", table.snapshot.id)})

    base = engine.commit(name, branched).refs[branch].snapshot_id
    # A deletion of whole files adds no property to the summary of its snapshot.
    engine.write(name, branch, text, {})
    there = require_table(engine, name)
    written = there.refs.get(branch)
    if written is None or there.snapshot is None or there.snapshot.id != base:
        return False
    rows = replace(there.snapshot, id=written.snapshot_id, total_records=None)
    try:
        engine.commit(name, PublishRows(name, branch, base, rows).apply)
    except HeadMoved:
        return False
    metadata = engine.metadata_json(name)
    if metadata is not None:
        require_published(metadata, name, written.snapshot_id)
        numbers.append(deleted_rows(metadata, written.snapshot_id))
    return True


def deleted_rows(metadata: Mapping[str, Any], snapshot_id: int) -> int | None:
    """The number of rows that a snapshot removes, by its summary; ``None`` where it does not show that.

    A rewritten file counts as deleted and as added; a delete file counts its positions.
    """
    snapshots = {s["snapshot-id"]: s for s in metadata.get("snapshots") or ()}
    snapshot = snapshots.get(snapshot_id, {})
    summary = snapshot.get("summary") or {}
    if "total-records" not in summary:
        return None
    gone, again, marked, unmarked = (
        int(summary.get(key, 0))
        for key in (
            "deleted-records",
            "added-records",
            "added-position-deletes",
            "removed-position-deletes",
        )
    )
    before = snapshots.get(snapshot.get("parent-snapshot-id"), {}).get("summary") or {}
    if gone and any(int(before.get(f"total-{kind}-deletes", 0)) for kind in ("position", "equality")):
        return None  # a removed file may count rows that were deleted before
    return gone - again + marked - unmarked


def _without_branches(table: Table, project: str) -> Table:
    """The table without branches on which an earlier run or attempt has deleted rows."""
    kept = {
        n: ref
        for n, ref in table.refs.items()
        if ref.kind != "branch" or not is_maintain_branch_of(n, project)
    }
    return replace(table, refs=kept)


def old_rows(
    engine: CommittingEngine, name: TableName, column: FieldPath, type_: str, before: datetime
) -> tuple[int, int]:
    """The numbers of files, by the manifests, that may contain older rows, and of these files' rows.

    Through Spark Connect, a query counts the files with older rows, and these rows.

    :returns: files and rows; no other file has such old rows.
    :raises EngineError: there is no such table, or a manifest cannot be read.
    """
    spark = engine.in_jvm("finding old rows")
    if spark is None:
        delete = delete_sql(engine.catalog_name, name, column, type_, before)
        ((files, rows),) = engine.ask(
            f"SELECT count(DISTINCT _file), count(*){delete.removeprefix('DELETE')}"
        )
        return int(files), int(rows)
    files = rows = 0
    with convert_java_errors():
        said = spark.java.iceberg.expressions.Expressions
        path = ".".join(column)
        older = getattr(said, "and")(said.notNull(path), said.lessThan(path, _moment(type_, before, "T")))
        tasks = spark.java.table(name).newScan().filter(older).planFiles()
        try:
            found = tasks.iterator()
            while found.hasNext():
                files += 1
                rows += found.next().file().recordCount()
        finally:
            tasks.close()
    return files, rows


def _moment(type_: str, moment: datetime, between: str) -> str:
    """A time as text for a column of a type.

    :param between: the text between day and time.
    """
    utc = moment.astimezone(timezone.utc)
    if type_ == "date":
        return f"{utc:%Y-%m-%d}"
    return f"{utc:%Y-%m-%d}{between}{utc:%H:%M:%S}{'+00:00' if type_ == 'timestamptz' else ''}"
