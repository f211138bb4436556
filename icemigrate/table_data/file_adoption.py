"""Adopts Parquet files as data files of a table, in one metadata commit, and takes them out again.

The files stay where they are.  Unless the table takes their ownership, ``gc.enabled`` becomes false in the
same commit, as Iceberg's procedure ``snapshot`` sets it: then no client deletes files of the table.

Spark's ``add_files`` does less: it checks no values, and refuses a table with hidden partitions, such as
``day(at)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from icemigrate.catalog.capabilities import NAME_MAPPING
from icemigrate.diagnostics import Diagnostic, Severity, format_count
from icemigrate.errors import IcemigrateError, Mistakes, UsageError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.retention import ancestor_ids
from icemigrate.iceberg.table_properties import (
    ADOPTED_FROM,
    ADOPTION_UNDONE,
    GC_ENABLED_PROPERTY,
    is_gc_enabled,
)
from icemigrate.table_data.adopted_checks import CheckedFiles, check_files
from icemigrate.table_data.adopted_files import CODE, FoundFiles, adopted_root, file_problem, find_files
from icemigrate.table_data.adopted_places import (
    files_with_deletes,
    live_below,
    new_files,
    require_own_folder,
)
from icemigrate.table_data.adoption_audit import audit_files
from icemigrate.table_data.live_files import LiveFile, LiveFileReader
from icemigrate.table_data.load_target import LoadTarget, load_target
from icemigrate.table_data.row_commit import RowChange, commit_rows
from icemigrate.table_data.snapshot_rollback import plan_rollback_of_table
from icemigrate.table_data.table_session import CurrentTable, TableSession
from icemigrate.table_data.writable_tables import load_for_snapshots
from icemigrate.wal.storage_path import AnyPath

_LAST_VERSION_WITH_REMOVALS = 2
"""Of the format: later ones keep the ids of rows, which the engine does not write again."""


class Adoption(Frozen):
    """What an adoption or its undo did, or would do.

    :param root: the path without symbolic links, or on a storage.
    :param snapshot_id: ``None`` where there was nothing to do, or for a dry run.
    :param there: files that the table has already, or whose rows it has from `ingest`.
    :param empty: files without rows, which are left out.
    :param mapping_set: whether the table got a name mapping.
    :param gc_disabled: whether ``gc.enabled`` becomes false.
    :param unread: why the rows were not read for the comparison, as a clause.
    """

    table: CurrentTable
    root: AnyPath
    files: int
    rows: int
    size: int
    snapshot_id: int | None = None
    there: int = 0
    empty: int = 0
    mapping_set: bool = False
    gc_disabled: bool = False
    unread: str | None = None

    def with_snapshot(self, snapshot_id: int | None, unread: str | None = None) -> Adoption:
        """The adoption after its commit."""
        return replace(self, snapshot_id=snapshot_id, unread=unread)


def adopt_files(
    session: TableSession, name: str, path: AnyPath, *, takes_ownership: bool = False, dry_run: bool = False
) -> Adoption:
    """Adopt the files of a path.

    :param name: of the table, as migration files write it.
    :param takes_ownership: whether the table may delete the files like its own.
    :raises UsageError: there is no such table or path, or the path is in the folder of a table.
    :raises Mistakes: files do not fit; nothing is changed, and no file either.
    """
    found = find_files(path)
    table = load_for_snapshots(session, name)
    elsewhere = require_own_folder(session, table, found)
    checked: CheckedFiles | None = None
    checked_for: LoadTarget | None = None
    outcome: Adoption | None = None
    unread: str | None = None

    def prepare(table: CurrentTable, _earlier: RowChange | None) -> RowChange:
        nonlocal checked, checked_for, outcome
        target, new = load_target(table), new_files(session, table, found)
        if checked is None or checked_for is None or not target.is_laid_out_as(checked_for):
            checked, checked_for = check_files(new.files, target), target
        problems = (*found.problems, *elsewhere, *new.problems, *checked.problems)
        if problems:
            files = len({str(one.place) for one in problems if one.place is not None})
            which = f"of the files of {found.root}, {files} cannot be" if files else "the files cannot be"
            raise Mistakes(problems, f"{which} adopted into `{name}`; nothing was changed")
        paths = {one.path for one in new.files}
        # Another process may have adopted some of them since.
        files_ = tuple(one for one in checked.files if one.file.path in paths)
        checked = replace(checked, files=files_)
        properties = {} if checked.mapping is None else {NAME_MAPPING: checked.mapping}
        if not takes_ownership and is_gc_enabled(target.properties):
            properties[GC_ENABLED_PROPERTY] = "false"
        outcome = Adoption(
            table,
            found.root,
            len(files_),
            sum(one.data.records for one in files_),
            sum(one.file.size for one in files_),
            there=new.there + checked.doubled,
            empty=checked.empty,
            mapping_set=NAME_MAPPING in properties,
            gc_disabled=GC_ENABLED_PROPERTY in properties,
        )
        return RowChange(
            table,
            tuple(one.data for one in files_),
            summary={ADOPTED_FROM: str(found.root)},
            properties=properties,
            keeps_files=True,
        )

    def inspect(after: CurrentTable) -> None:
        nonlocal unread
        assert checked is not None, "the change is prepared"
        unread = audit_files(session, after, checked.files)

    if dry_run:
        prepare(table, None)
        assert outcome is not None, "it is prepared"
        return outcome
    done = commit_rows(session, name, prepare, inspect)
    assert outcome is not None, "it is prepared"
    return outcome.with_snapshot(done.snapshot_id, unread)


def undo_adoption(session: TableSession, name: str, path: AnyPath, *, dry_run: bool = False) -> Adoption:
    """Take the files of a path out of a table: one snapshot, which keeps all other rows.

    :param path: as it was adopted; its files may be gone.
    :raises UsageError: there is no such table, or it did not adopt the path.
    :raises Mistakes: rows of the files are in other files by now; nothing is changed.
    """
    found = FoundFiles(adopted_root(path), (), ())
    table = load_for_snapshots(session, name)
    outcome: Adoption | None = None

    def prepare(table: CurrentTable, _earlier: RowChange | None) -> RowChange:
        nonlocal outcome
        adopted = _adopted_files(session, table, found)
        live = live_below(session, table, found)
        whole = {path: live[path] for path in adopted if path in live}
        _require_whole(table, found, adopted, live, files_with_deletes(session, table, whole))
        files = [live[path] for path in adopted]
        outcome = Adoption(
            table, found.root, len(files), sum(one.rows for one in files), sum(one.size for one in files)
        )
        return RowChange(
            table,
            (),
            removed=frozenset(one.path for one in files),
            summary={ADOPTION_UNDONE: str(found.root)},
        )

    if dry_run:
        prepare(table, None)
        assert outcome is not None, "it is prepared"
        return outcome
    done = commit_rows(session, name, prepare)
    assert outcome is not None, "it is prepared"
    return outcome.with_snapshot(done.snapshot_id)


def _adopted_files(session: TableSession, table: CurrentTable, found: FoundFiles) -> tuple[str, ...]:
    """The paths of the files that adoptions of a path added to main, without those that are undone.

    :raises UsageError: there is no such adoption.
    """
    metadata = table.metadata
    adoptions = list(_adoptions(metadata, found))
    if not adoptions:
        known = dict.fromkeys(_roots(metadata))
        raise UsageError(
            f"table `{table.declared}` has no adoption of `{found.root}` to undo",
            f"it adopted {', '.join(f'`{root}`' for root in known)}" if known else None,
        )
    reader = LiveFileReader(metadata, session.environment.catalog.read_file)
    return tuple(
        dict.fromkeys(
            path
            for snapshot in adoptions
            for path, file in live_below(session, table, found, snapshot, reader).items()
            if file.added_by == snapshot["snapshot-id"]
        )
    )


def _adoptions(metadata: Mapping[str, Any], found: FoundFiles) -> Iterator[Mapping[str, Any]]:
    """The snapshots of main that adopted files of a path, the newest first."""
    undone = list[PurePath]()
    for snapshot, summary in _summaries(metadata):
        if (root := summary.get(ADOPTION_UNDONE)) is not None:
            undone.append(PurePath(root))
        root = summary.get(ADOPTED_FROM)
        if root is None or not found.holds(root):
            continue
        if not any(PurePath(root).is_relative_to(one) for one in undone):
            yield snapshot


def _roots(metadata: Mapping[str, Any]) -> Iterator[str]:
    for _, summary in _summaries(metadata):
        if (root := summary.get(ADOPTED_FROM)) is not None:
            yield root


def _summaries(metadata: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, str]]]:
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
    for number in ancestor_ids(metadata, metadata.get("current-snapshot-id")):
        yield snapshots[number], snapshots[number].get("summary") or {}


def _require_whole(
    table: CurrentTable,
    found: FoundFiles,
    adopted: tuple[str, ...],
    live: Mapping[str, LiveFile],
    deleted: Collection[str],
) -> None:
    """Require that the table still has all rows of each adopted file.

    :param deleted: paths of live files with delete files: an update writes the rows to other files.
    :raises Mistakes: another one has its rows by now, or the format keeps the ids of rows.
    """
    missing = [path for path in adopted if path not in live]
    version = table.metadata["format-version"]
    problems = [
        file_problem(path, "a later snapshot replaced it, so other files may have its rows")
        for path in missing
    ]
    problems += [
        file_problem(path, "a delete file is for its partition, so other files may have its rows")
        for path in adopted
        if path in deleted
    ]
    if version > _LAST_VERSION_WITH_REMOVALS:
        reason = f"table `{table.declared}` has format version {version}, whose rows have ids"
        problems.append(Diagnostic(CODE, reason, None, None))
    if problems:
        summary = f"the adoption of {found.root} cannot be undone on its own; nothing was changed"
        raise Mistakes((*problems, *_rollback_note(table, found)), summary)


def _rollback_note(table: CurrentTable, found: FoundFiles) -> Iterator[Diagnostic]:
    """The way back to the snapshot before the adoption, where there is one."""
    *_, first = _adoptions(table.metadata, found)
    parent = first.get("parent-snapshot-id")
    if parent is None:
        return
    try:
        plan = plan_rollback_of_table(table, parent)
    except IcemigrateError:
        return  # it has expired
    later = format_count(plan.passed, "snapshot")
    yield Diagnostic(
        CODE,
        f"the table can go back to snapshot {parent}, which also takes back {later}, with all rows since",
        None,
        f"`icemigrate table rollback {table.declared} --snapshot {parent}`",
        Severity.NOTE,
    )
