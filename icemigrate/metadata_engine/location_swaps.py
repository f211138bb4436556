"""Commits of catalogs that name a table's metadata file: write the next file, then swap its location.

The metadata is edited, not rebuilt from a model, so keys that icemigrate does not know survive.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from icemigrate.catalog.metadata_files import checked_metadata, read_current_metadata
from icemigrate.errors import CatalogError, EngineError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.written_schemas import PARTS, written_schema
from icemigrate.metadata_engine.apply_updates import apply_updates
from icemigrate.metadata_engine.metadata_file_names import (
    metadata_content,
    new_metadata_location,
    removed_metadata_files,
)
from icemigrate.metadata_engine.recent_tables import RecentValues
from icemigrate.metadata_engine.table_store import (
    CommitConflict,
    CommitRefused,
    CommitStateUnknown,
    FileStore,
    StoredTable,
    TableCommit,
)
from icemigrate.system.worker_threads import DISK_THREADS, run_in_threads

_NAMED = 10


class LocationSwap(Frozen):
    """A commit with its new metadata file.

    :param base: the table that was read; ``None`` where the commit creates it.
    """

    name: TableName
    base: StoredTable | None
    after: StoredTable


def load_current(
    name: TableName,
    find_location: Callable[[TableName], str | None],
    recent: RecentValues[TableName, StoredTable],
    files: FileStore,
) -> StoredTable | None:
    """The table whose metadata file the catalog names; ``None`` where there is none.

    :param find_location: asks the catalog.
    :param recent: tables that were read before, and gets this one.  A metadata file never changes: where the
        catalog names the same file again, its table is the same.
    """
    location = find_location(name)
    if location is None:
        return None
    known = recent.get(name)
    if known is not None and known.location == location:
        return known
    found = read_current_metadata(name, location, find_location, files.read, PARTS)
    if found is None:
        return None
    json, location = found
    stored = StoredTable(location, checked_metadata(name, json, location))
    recent.keep(name, stored)
    return stored


def prepare_swap(commit: TableCommit, default_location: Callable[[TableName], str]) -> LocationSwap:
    """The metadata after a commit, under a new location.

    :param default_location: of a new table that declares none.
    """
    base = commit.base
    now_ms = time.time_ns() // 1_000_000
    if base is not None:
        # Java refuses metadata that is older than its snapshots; clocks of machines differ.
        now_ms = max(now_ms, int(base.json["last-updated-ms"]))
    updates = commit.updates
    if base is None and not any(update["action"] == "set-location" for update in updates):
        updates += ({"action": "set-location", "location": default_location(commit.name)},)
    json = apply_updates(
        None if base is None else base.json,
        updates,
        previous_location=None if base is None else base.location,
        now_ms=now_ms,
    )
    # The next commit copies the text of these schemas.
    json["schemas"] = list(map(written_schema, json["schemas"]))
    return LocationSwap(commit.name, base, StoredTable(new_metadata_location(json, base), json))


def carry_out_swaps(
    swaps: Sequence[LocationSwap], files: FileStore, swap: Callable[[], None]
) -> tuple[StoredTable, ...]:
    """Write the new metadata files and swap the locations.

    :param swap: swaps all locations, or none.
    :raises CommitRefused: nothing was written; the new files are deleted.
    :raises CommitStateUnknown: it is not known whether the swap was made; the new files stay.
    """
    written: list[str] = []
    is_swapping = False
    try:
        written.extend(one.after.location for one in swaps)
        run_in_threads(partial(_write, files), swaps, DISK_THREADS)
        is_swapping = True
        swap()
    except CommitStateUnknown:
        raise
    except (CatalogError, EngineError) as error:
        _delete(files, written)
        if isinstance(error, CommitRefused):
            raise
        raise CommitRefused(error.message, error.hint) from error
    except BaseException:
        # An interrupted swap may have been made: then the catalog refers to the files.
        if not is_swapping:
            _delete(files, written)
        raise
    for one in swaps:
        if one.base is not None:
            _delete(files, removed_metadata_files(one.base.json, one.after.json))
    return tuple(one.after for one in swaps)


def swap_outcome(swap: LocationSwap, location: str | None, read: Callable[[str], Json]) -> bool | None:
    """Whether a swap was made; ``None`` while the location is as before, or if no file shows it.

    :param location: the table's location in the catalog.
    :param read: reads the metadata at a location.
    """
    ours, base = swap.after.location, swap.base
    if location == ours:
        return True
    if location is None or (base is not None and location == base.location):
        return None
    metadata = read(location)
    if base is None:
        return bool(metadata.get("table-uuid") == swap.after.json["table-uuid"])
    log = {entry["metadata-file"] for entry in metadata.get("metadata-log", ())}
    if ours in log:
        return True
    # The next writer logs the file that it found, unless the log is too short for it.
    return False if base.location in log else None


def swap_conflict(swaps: Sequence[LocationSwap]) -> CommitConflict:
    """The error of swaps that another client preceded."""
    if all(one.base is None for one in swaps):
        if len(swaps) > 1:
            return CommitConflict(f"one of {named_tables(swaps)} exists already; nothing was written")
        return CommitConflict(f"there is a table or view {named_tables(swaps)} already")
    return CommitConflict(f"another client changed {named_tables(swaps)} first; nothing was written")


def named_tables(swaps: Sequence[LocationSwap]) -> str:
    """The names of tables in a message, which may have thousands."""
    names, more = ", ".join(f"`{one.name}`" for one in swaps[:_NAMED]), len(swaps) - _NAMED
    return names if more <= 0 else f"{names} and {more:,} more"


def _write(files: FileStore, swap: LocationSwap) -> None:
    files.write(swap.after.location, *metadata_content(swap.after.json))


def _delete(files: FileStore, locations: Sequence[str]) -> None:
    for location in locations:
        files.delete(location)
