"""Rollback to a snapshot: the main branch of a table goes back, or forward again; no snapshot is removed."""

from __future__ import annotations

from icemigrate.errors import UsageError
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.metadata_parts import current_schema_id
from icemigrate.iceberg.retention import ancestor_ids
from icemigrate.iceberg.table import MAIN_BRANCH
from icemigrate.metadata_engine.table_store import TableCommit
from icemigrate.metadata_engine.table_updates import requirements
from icemigrate.results.snapshot_results import RollbackTableResult
from icemigrate.table_data.snapshot_list import get_current_snapshot, snapshot_info
from icemigrate.table_data.table_points import ChosenSnapshot, choose_snapshot
from icemigrate.table_data.table_session import CurrentTable, TableSession
from icemigrate.table_data.writable_tables import load_for_snapshots


def plan_rollback_of_table(table: CurrentTable, snapshot: str | int) -> RollbackTableResult:
    """The result of :func:`rollback_table`, without a change.

    :param snapshot: an id, a tag, a branch or a time.
    :raises UsageError: the table has no such snapshot, or it is not in the line of main.
    """
    chosen = choose_snapshot(table, snapshot)
    metadata = table.metadata
    now = get_current_snapshot(table)
    is_forward = _require_in_line(table, chosen, str(snapshot))
    target = snapshot_info(metadata, chosen.json)
    back = set(ancestor_ids(metadata, None if now is None else now.snapshot_id))
    ahead = set(ancestor_ids(metadata, chosen.snapshot_id))
    schema_id = chosen.json.get("schema-id")
    return RollbackTableResult(
        table=str(table.declared),
        name=str(table.name),
        before=now,
        after=target,
        is_forward=is_forward,
        passed=len(ahead - back if is_forward else back - ahead),
        has_other_schema=schema_id is not None and schema_id != current_schema_id(metadata),
    )


def rollback_table(tables: TableSession, name: str, snapshot: str | int) -> RollbackTableResult:
    """Set main to an ancestor of its current snapshot, or to a descendant: the way back.

    Columns, properties, tags and other branches stay.  The snapshots after the new one stay too, until they
    expire.

    :param name: of the table, as migration files write it.
    :param snapshot: an id, a tag, a branch or a time.
    :raises UsageError: there is no such table or snapshot, another project owns the table, or the snapshot is
        not in the line of main.
    :raises CommitConflict: another writer committed first; nothing was changed.
    """
    table = load_for_snapshots(tables, name)
    plan = plan_rollback_of_table(table, snapshot)
    if plan.is_unchanged:
        return plan
    metadata = table.metadata
    limits = {key: value for key, value in metadata["refs"].get(MAIN_BRANCH, {}).items() if key not in _MOVED}
    update: Json = {
        "action": "set-snapshot-ref",
        "ref-name": MAIN_BRANCH,
        "type": "branch",
        "snapshot-id": plan.after.snapshot_id,
        **limits,
    }
    tables.store.commit(
        [TableCommit(table.name, table.stored, (update,), tuple(requirements(metadata, (update,))))]
    )
    return plan.finished()


_MOVED = ("snapshot-id", "type")


def _require_in_line(table: CurrentTable, chosen: ChosenSnapshot, given: str) -> bool:
    """Whether the snapshot is a descendant of the current one.

    :param given: how the user named the snapshot.
    :raises UsageError: it is neither that nor an ancestor.
    """
    metadata = table.metadata
    current = metadata.get("current-snapshot-id")
    if chosen.snapshot_id in ancestor_ids(metadata, current):
        return False
    if current is not None and current in ancestor_ids(metadata, chosen.snapshot_id):
        return True
    line = set(ancestor_ids(metadata, current))
    near = next((id_ for id_ in ancestor_ids(metadata, chosen.snapshot_id) if id_ in line), None)
    shown = str(chosen.snapshot_id)
    name = f"snapshot {shown}" if given == shown else f"`{given}` is snapshot {shown}, which"
    graph = f"`icemigrate table snapshots {table.declared} --graph` draws the ancestors of `{MAIN_BRANCH}`"
    raise UsageError(
        f"{name} is neither an ancestor nor a descendant of the current snapshot of table `{table.declared}`",
        graph if near is None else f"`--snapshot {near}` is the newest ancestor of both; {graph}",
    )
