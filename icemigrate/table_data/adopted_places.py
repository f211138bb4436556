"""Which of a user's files tables already have, and which folders belong to tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from icemigrate.catalog.table_places import places_of_tables
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import CatalogError, UsageError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.locations import normalize_location
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.retention import ancestor_ids
from icemigrate.iceberg.table_properties import ADOPTED_FROM, ADOPTION_UNDONE
from icemigrate.table_data.adopted_files import AdoptedFile, FoundFiles
from icemigrate.table_data.live_files import DATA, EQUALITY_DELETES, LiveFile, LiveFileReader
from icemigrate.table_data.snapshot_list import snapshot_of
from icemigrate.table_data.table_session import CurrentTable, TableSession


class NewFiles(Frozen):
    """The files that a table does not have yet.

    :param there: how many it has already.
    :param problems: of files that it may not adopt.
    """

    files: tuple[AdoptedFile, ...]
    there: int
    problems: tuple[Diagnostic, ...]


def require_own_folder(
    session: TableSession, table: CurrentTable, found: FoundFiles
) -> tuple[Diagnostic, ...]:
    """Refuse a folder of tables, whose maintenance deletes files there; the files that other tables adopted.

    :raises UsageError: the path is in the folder of a table, or above one.
    :raises CatalogError: the tables cannot be listed.
    """
    catalog, root = session.environment.catalog, str(found.root)
    unreadable, adopting = set[TableName](), list[TableName]()

    def metadata(name: TableName) -> Mapping[str, Any] | None:
        try:
            json = catalog.metadata_json(name)
        except CatalogError:
            unreadable.add(name)
            return None
        if json is not None and name != table.name and any(_overlaps(found, path) for path in _roots(json)):
            adopting.append(name)
        return json

    for place in places_of_tables(catalog, metadata, unreadable.__contains__):
        if isinstance(place, TableName):
            continue
        for folder in sorted(place.all):
            # What a table adopted is no folder of its own.
            if found.holds(folder) or root.startswith(f"{folder}/"):
                raise UsageError(
                    f"`{root}` overlaps with {folder}, a folder of table `{place.name}`: maintenance deletes "
                    "files there",
                    "move the files to a folder of their own",
                )
    return tuple(problem for name in adopting for problem in _files_of(session, name, found))


def _files_of(session: TableSession, name: TableName, found: FoundFiles) -> Iterator[Diagnostic]:
    """The files that another table has."""
    declared = session.environment.names.declared(name)
    table = session.find(declared)
    if table is None:
        return
    live = live_below(session, table, found)
    for file in found.files:
        if str(file.path) in live:
            yield file.problem(
                f"table `{declared}` has it already",
                "adopt a file into one table, or copy it",
            )


def _roots(json: Mapping[str, Any]) -> Iterator[str]:
    for snapshot in json.get("snapshots") or ():
        if (root := (snapshot.get("summary") or {}).get(ADOPTED_FROM)) is not None:
            yield root


def _overlaps(found: FoundFiles, path: str) -> bool:
    return found.holds(path) or str(found.root).startswith(f"{path}/")


def live_below(
    session: TableSession,
    table: CurrentTable,
    found: FoundFiles,
    snapshot: Mapping[str, Any] | None = None,
    reader: LiveFileReader | None = None,
) -> dict[str, LiveFile]:
    """The data files of a snapshot below a path, by their paths on this machine.

    :param snapshot: of the table; ``None`` for the current one.
    """
    metadata = table.metadata
    current = snapshot_of(metadata, metadata.get("current-snapshot-id"))
    reader = reader or _reader(session, metadata)
    files = (
        (normalize_location(file.path), file)
        for file in reader.of(snapshot or current)
        if file.content == DATA
    )
    return {path: file for path, file in files if found.holds(path)}


def files_with_deletes(
    session: TableSession, table: CurrentTable, files: Mapping[str, LiveFile]
) -> frozenset[str]:
    """The paths of data files whose rows delete files of the current snapshot may delete.

    Specification, "Scan Planning".  One that names its data file is counted for all of the partition.

    :param files: of the table, by their paths.
    """
    current = snapshot_of(table.metadata, table.metadata.get("current-snapshot-id"))
    deletes = [file for file in _reader(session, table.metadata).of(current) if file.content != DATA]
    return frozenset(path for path, file in files.items() if any(_may_delete(one, file) for one in deletes))


def _may_delete(delete: LiveFile, file: LiveFile) -> bool:
    if delete.sequence is not None and file.sequence is not None and delete.sequence < file.sequence:
        return False
    # Equality deletes without a partition are for the whole table.
    is_global = delete.content == EQUALITY_DELETES and not any(
        value is not None for value in delete.partition.values()
    )
    return is_global or _partition(delete) == _partition(file)


def _partition(file: LiveFile) -> tuple[int, str]:
    """The partition as text: a NaN is not equal to itself."""
    return file.spec_id, repr(sorted(file.partition.items()))


def new_files(session: TableSession, table: CurrentTable, found: FoundFiles) -> NewFiles:
    """The files that a table lacks; those whose rows it had in other files are problems."""
    live = live_below(session, table, found)
    problems = [
        file.problem(
            "it is in the table, and it was changed since", "write rows to new files, and never change these"
        )
        for file in found.files
        if (there := live.get(str(file.path))) is not None and there.size != file.size
    ]
    new = [file for file in found.files if str(file.path) not in live]
    problems += _removed_earlier(session, table, found, new)
    return NewFiles(tuple(new), len(found.files) - len(new), tuple(problems))


def _removed_earlier(
    session: TableSession, table: CurrentTable, found: FoundFiles, new: Sequence[AdoptedFile]
) -> Iterator[Diagnostic]:
    """The files that the table had, and that a later snapshot replaced or removed."""
    metadata = table.metadata
    if not any(_overlaps(found, path) for path in _roots(metadata)):
        return
    reader, paths = _reader(session, metadata), {str(file.path): file for file in new}
    later: Mapping[str, Any] | None = None
    for number in ancestor_ids(metadata, metadata.get("current-snapshot-id")):
        snapshot = snapshot_of(metadata, number)
        if snapshot is None or not paths:
            return
        there = [
            paths.pop(path) for path in live_below(session, table, found, snapshot, reader) if path in paths
        ]
        if later is not None and ADOPTION_UNDONE not in (later.get("summary") or {}):
            for file in there:
                number = later["snapshot-id"]
                yield file.problem(
                    f"the table had it until snapshot {number}, so other files may have its rows",
                    "move it out of the folder",
                )
        later = snapshot


def _reader(session: TableSession, metadata: Mapping[str, Any]) -> LiveFileReader:
    return LiveFileReader(metadata, session.environment.catalog.read_file)
