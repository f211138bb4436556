"""Expire old snapshots of one table, and delete the files that only they need; without Java.

Which snapshots expire is Iceberg's rule (:mod:`icemigrate.iceberg.retention`).  The files are found as
Iceberg's ``ReachableFileCleanup`` finds them: a file is deleted only if no snapshot that stays lists it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from icemigrate.catalog.table_places import shared_files_reason
from icemigrate.errors import IcemigrateError, UsageError
from icemigrate.execution.signals import watch_stop_signals
from icemigrate.frozen import Frozen, replace
from icemigrate.history.needed_snapshots import snapshots_before_row_changes, snapshots_with_last_copies
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.retention import (
    SNAPSHOT_AGE,
    expired_references,
    retained_by_references,
    snapshot_ids_to_expire,
)
from icemigrate.iceberg.table_properties import GC_ENABLED_PROPERTY, is_gc_enabled
from icemigrate.metadata_engine.apply_updates import complete_metadata
from icemigrate.metadata_engine.table_store import CommitConflict, TableCommit
from icemigrate.metadata_engine.table_updates import requirements
from icemigrate.results.snapshot_results import ExpireResult, KeptSnapshots
from icemigrate.spark.java_errors import retry_on_conflict
from icemigrate.system.measured_activity import FILES, measured_activity
from icemigrate.table_data.live_files import LiveFileReader, SnapshotManifest
from icemigrate.table_data.table_session import CurrentTable, TableSession
from icemigrate.table_data.writable_tables import load_for_snapshots

_NAMED = 5
_MOST_DAYS = 36_500
_STATISTICS = ("statistics", "partition-statistics")


class UnreachableFiles(Frozen):
    """Files that only expired snapshots need.

    :param data: locations of data files and delete files.
    :param metadata: locations of manifests, manifest lists and statistics files.
    :param size: of the data files, delete files and manifests, in bytes.
    """

    data: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    size: int = 0


def plan_expiry(
    tables: TableSession, table: CurrentTable, older_than_days: float, at: datetime | None = None
) -> ExpireResult:
    """The result of :func:`expire_snapshots`, without a change.

    :param at: the time that the age is counted from; ``None`` for now.
    :raises UsageError: the number of days is out of range, or is no number.
    :raises IcemigrateError: its files may not be deleted: ``gc.enabled`` is false, another table uses them,
        or a migration of the table was interrupted.
    :raises MetadataError: a manifest cannot be read.
    """
    if not 0 <= older_than_days <= _MOST_DAYS:  # also false for NaN
        raise UsageError(
            f"snapshots older than {older_than_days} days: the number is out of range",
            f"give a number of days from 0 to {_MOST_DAYS}",
        )
    at = at or datetime.now(timezone.utc)
    _require_own_files(tables, table)
    metadata = table.metadata
    now_ms = round(at.timestamp() * 1000)
    aged = _with_age(metadata, older_than_days)
    due = snapshot_ids_to_expire(aged, now_ms)
    needed = _needed(tables, metadata, due)
    expired = tuple(
        s["snapshot-id"] for s in metadata["snapshots"] if s["snapshot-id"] in due - needed.keys()
    )
    files = unreachable_files(_reader(tables, metadata), metadata, set(expired))
    refs = expired_references(aged, now_ms)
    return ExpireResult(
        table=str(table.declared),
        name=str(table.name),
        older_than=at - timedelta(days=older_than_days),
        expired=expired,
        refs=tuple(name for name in refs if metadata["refs"][name]["snapshot-id"] not in needed),
        kept=(*_kept_by_references(aged, now_ms), *_kept_for_undo(needed)),
        remaining=len(metadata["snapshots"]) - len(expired),
        data_files=len(files.data),
        metadata_files=len(files.metadata),
        size_bytes=files.size,
    )


def expire_snapshots(
    tables: TableSession,
    name: str,
    older_than_days: float,
    *,
    dry_run: bool = False,
    at: datetime | None = None,
    shown: ExpireResult | None = None,
) -> ExpireResult:
    """Expire the snapshots of a table that are older than some days, and delete files that only they need.

    The current snapshot, those that tags and branches retain, the number of newest ones that the table's
    ``history.expire.min-snapshots-to-keep`` asks for, and those that an undo of a migration reads stay.  A
    tag or a branch whose own age limit is over is removed.

    :param name: of the table, as migration files write it.
    :param at: the time that the age is counted from; ``None`` for now.
    :param shown: what a user agreed to: no other snapshot expires.
    :raises UsageError: there is no such table, or another project owns it.
    :raises IcemigrateError: as :func:`plan_expiry`; nothing was changed.
    :raises CommitConflict: other writers committed first in each attempt; nothing was changed.
    :raises Stopped: the user asked to stop before the commit began; nothing was changed.
    """
    counted_from = at or datetime.now(timezone.utc)
    return retry_on_conflict(
        lambda: _expire(tables, name, older_than_days, counted_from, shown, is_dry_run=dry_run),
        longest_pause_s=0.1,
        is_conflict=lambda error: isinstance(error, CommitConflict) and not error.keeps_files,
    )


def _expire(
    tables: TableSession,
    name: str,
    older_than_days: float,
    at: datetime,
    shown: ExpireResult | None,
    *,
    is_dry_run: bool,
) -> ExpireResult:
    """One attempt of :func:`expire_snapshots`."""
    table = load_for_snapshots(tables, name)
    plan = plan_expiry(tables, table, older_than_days, at)
    if shown is not None and not set(plan.expired) <= set(shown.expired):
        raise IcemigrateError(
            f"more snapshots of table `{name}` would expire than were shown", "run the command again"
        )
    if is_dry_run or plan.is_empty:
        return plan
    metadata = table.metadata
    updates: tuple[Json, ...] = (
        *({"action": "remove-snapshot-ref", "ref-name": ref} for ref in plan.refs),
        *_removal(plan.expired),
    )
    checks = tuple(requirements(metadata, updates, tuple(metadata["refs"])))
    reader = _reader(tables, metadata)
    with watch_stop_signals() as stop:  # no later command finds files that no snapshot has
        stop.check()
        (after,) = tables.store.commit([TableCommit(table.name, table.stored, updates, checks)])
        files = _files_after(reader, metadata, set(plan.expired), complete_metadata(after.json)["snapshots"])
        unused = (*files.data, *files.metadata)
        with measured_activity("Deleting files", FILES, len(unused)) as add:
            for location in unused:
                tables.store.files.delete(location)
                add(1)
    return replace(
        plan, data_files=len(files.data), metadata_files=len(files.metadata), size_bytes=files.size, done=True
    )


def _files_after(
    reader: LiveFileReader, before: Mapping[str, Any], expired: set[int], there: Sequence[Json]
) -> UnreachableFiles:
    """The files that no snapshot needs.

    :param before: complete metadata from before the expiry.
    :param there: the snapshots after it.  One that another writer added in between needs its parent's files.
    """
    gone = expired - {snapshot["snapshot-id"] for snapshot in there}
    known = {snapshot["snapshot-id"] for snapshot in before["snapshots"]}
    new = [snapshot for snapshot in there if snapshot["snapshot-id"] not in known]
    return unreachable_files(reader, {**before, "snapshots": [*before["snapshots"], *new]}, gone)


def _removal(expired: tuple[int, ...]) -> Iterator[Json]:
    if expired:
        yield {"action": "remove-snapshots", "snapshot-ids": list(expired)}


def unreachable_files(
    files: LiveFileReader, metadata: Mapping[str, Any], expired: set[int]
) -> UnreachableFiles:
    """The files that no snapshot needs after an expiry.

    :param files: reads the manifests.
    :param metadata: complete metadata from before the expiry.
    :raises MetadataError: a manifest cannot be read.
    """
    gone = [s for s in metadata["snapshots"] if s["snapshot-id"] in expired]
    if not gone:
        return UnreachableFiles()
    stay = [s for s in metadata["snapshots"] if s["snapshot-id"] not in expired]
    kept, old = _by_path(files, stay), _by_path(files, gone)
    unused = {path: manifest for path, manifest in old.items() if path not in kept}
    data = {file.path: file.size for manifest in unused.values() for file in files.files(manifest)}
    if data:
        for manifest in kept.values():
            for file in files.files(manifest):
                data.pop(file.path, None)
    kept_lists = {s["manifest-list"] for s in stay}
    lists = [s["manifest-list"] for s in gone if s["manifest-list"] not in kept_lists]
    statistics = [
        part["statistics-path"]
        for key in _STATISTICS
        for part in metadata.get(key) or ()
        if part["snapshot-id"] in expired
    ]
    size = sum(data.values()) + sum(manifest.length for manifest in unused.values())
    return UnreachableFiles(tuple(data), tuple(dict.fromkeys((*unused, *lists, *statistics))), size)


def _by_path(files: LiveFileReader, snapshots: Iterable[Mapping[str, Any]]) -> dict[str, SnapshotManifest]:
    return {manifest.path: manifest for snapshot in snapshots for manifest in files.manifests(snapshot)}


def _reader(tables: TableSession, metadata: Mapping[str, Any]) -> LiveFileReader:
    return LiveFileReader(metadata, tables.environment.catalog.read_file)


def _with_age(metadata: Mapping[str, Any], days: float) -> Mapping[str, Any]:
    """The metadata with this maximum age of snapshots, where a branch has none of its own."""
    age = str(round(days * 86_400_000))
    return {**metadata, "properties": {**metadata["properties"], SNAPSHOT_AGE: age}}


def _require_own_files(tables: TableSession, table: CurrentTable) -> None:
    if not is_gc_enabled(table.metadata["properties"]):
        raise IcemigrateError(
            f"`{GC_ENABLED_PROPERTY}` of table `{table.declared}` is false: its files may not be deleted",
            "other tables may use its files; if none does, set the property to true in a migration",
        )
    if reason := shared_files_reason(tables.environment.catalog, table.name):
        raise IcemigrateError(f"files of table `{table.declared}` may not be deleted: {reason}")
    for intent in tables.environment.history().intents:
        if str(table.declared) in intent.tables:
            raise IcemigrateError(
                f"migration {intent.version} of table `{table.declared}` was interrupted",
                "`icemigrate apply` finishes it, `icemigrate rollback` undoes it",
            )


def _needed(tables: TableSession, metadata: Mapping[str, Any], due: frozenset[int]) -> dict[int, str]:
    """The snapshots that are due and an undo reads, each with the version."""
    history, uuid = tables.environment.history(), metadata.get("table-uuid") or ""
    needed = (snapshots_with_last_copies(history), snapshots_before_row_changes(history))
    found = [one for by_table in needed for one in by_table.get(uuid, ())]
    return {one.snapshot_id: one.version.text for one in found if one.snapshot_id in due}


def _kept_for_undo(needed: Mapping[int, str]) -> Iterator[KeptSnapshots]:
    for version in sorted(set(needed.values())):
        count = sum(one == version for one in needed.values())
        yield KeptSnapshots(f"a rollback of {version} reads it", count)


def _kept_by_references(metadata: Mapping[str, Any], now_ms: int) -> Iterator[KeptSnapshots]:
    count, names = retained_by_references(metadata, now_ms)
    if count:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield KeptSnapshots(f"tags or branches: {', '.join(names[:_NAMED])}{more}", count)
