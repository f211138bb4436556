"""The migrations that mention each table: the last applied one, and those that are pending."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from icemigrate.commands.list_values import known_values, recorded_values, with_values
from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_unapplied, load_valid_files
from icemigrate.commands.template_names import RecordedValues, lacks_values
from icemigrate.errors import HistoryError
from icemigrate.files.read.list_sources import as_list_values, by_list_name, merge_list_values
from icemigrate.files.read.migration_file import AnyFile, MigrationFile
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.history.migration_states import MigrationStates
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan import MigrationPlan
from icemigrate.planning.replay import ReplayedFile
from icemigrate.project.project_values import Project

COMPLETE_STATES = ("applied", "edited", "missing", "unrecorded")
"""States of migrations whose changes are complete."""


@dataclass(slots=True)
class TableVersions:
    """The migrations that mention one table."""

    applied: str | None = None
    pending: list[str] = field(default_factory=list)


class PlannedTableName(Frozen):
    """The names of one table in one plan, without the plan, which takes memory.

    :param formerly: its declared name before; ``None`` for a first mention.
    :param declared: its declared name after.
    :param is_dropped: whether the plan drops it.
    """

    formerly: TableName | None
    declared: TableName
    is_dropped: bool


def files_and_table_names(
    project: Project, known: History
) -> tuple[tuple[AnyFile, ...], Mapping[str, tuple[PlannedTableName, ...]]]:
    """All migration files, and the tables of each version, by version in order.

    The tables of an applied file are in its undo record, so the file is not parsed, and only the files after
    the last applied one are planned.  Where another file is edited, interrupted, out of order or without a
    record, all files are read and planned from empty, an applied template for its recorded values only.

    :param project: with the values of its lists, where they are known.
    :raises Mistakes: files have errors.
    :raises IcemigrateError: the folder cannot be read.
    """
    recorded = [a for a in known.applied if a.state is VersionState.APPLIED and a.version.text in known.undo]
    last = max((a.version for a in known.applied if a.state is VersionState.APPLIED), default=None)
    values = {**recorded_values(known), **by_list_name(known_values(project))}
    project = with_values(project, values)
    loaded = load_unapplied(project, recorded)
    # A comment in a file, or another list of the project file, changes the fingerprint, but no table.
    checksums = {a.version: a.checksum for a in recorded}
    changed = [file for file in loaded.migrations if checksums.get(file.version) != file.checksum]
    is_in_order = not known.intents and (last is None or all(file.version > last for file in changed))
    if len(changed) < len(loaded.files) and is_in_order:
        with suppress(HistoryError):
            names = {a.version.text: _recorded_names(known, a.version) for a in recorded}
            pending = [_with_tables_of(file, values) for file in changed]
            return loaded.files, {**names, **_names_of_plans(project, pending, known.state)}
    of_versions = _values_of_versions(known)
    files = tuple(
        _with_tables_of(file, of_versions.get(file.version, values))
        for file in load_valid_files(
            with_values(project, _merged(recorded_values(known), values)), is_expansion_limited=False
        )
    )
    return files, _names_of_plans(project, files, EMPTY_STATE)


def _with_tables_of(file: MigrationFile, values: Mapping[str, tuple[str, ...]]) -> MigrationFile:
    """A file with the tables of some values of its lists: no table of another value, and no placeholder."""
    if not file.templates:
        return file
    return replace(file, tables=tuple(entry for entry in file.tables if not lacks_values(entry, values)))


def _values_of_versions(known: History) -> RecordedValues:
    """The values of lists for which versions have tables, also where a run of them was interrupted."""
    began = {intent.version: intent.was for intent in known.intents if intent.was is not None}
    return {
        a.version: by_list_name(
            merge_list_values(a.list_values, began[a.version].list_values if a.version in began else ())
        )
        for a in known.applied
        if a.state in (VersionState.APPLIED, VersionState.INTERRUPTED)
    }


def _merged(
    first: Mapping[str, tuple[str, ...]], second: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    return by_list_name(merge_list_values(as_list_values(first), as_list_values(second)))


def _recorded_names(known: History, version: Version) -> tuple[PlannedTableName, ...]:
    record = known.undo_outline(version)
    return tuple(
        PlannedTableName(table.declared_before, name, table.declared_after is None)
        for table in (record.tables if record is not None else ())
        if (name := table.declared_after or table.declared_before) is not None
    )


def _names_of_plans(
    project: Project, files: Sequence[MigrationFile], base: DeclaredState
) -> Mapping[str, tuple[PlannedTableName, ...]]:
    found: dict[str, tuple[PlannedTableName, ...]] = {}

    def look(_source: ReplayedFile, plan: MigrationPlan) -> None:
        found[plan.version] = planned_table_names(plan)

    plan_from_empty(project, files, look=look, are_tables_stored=False, base=base)
    return found


def planned_table_names(plan: MigrationPlan) -> tuple[PlannedTableName, ...]:
    """The names of the tables of one plan."""
    return tuple(PlannedTableName(t.formerly, t.declared, t.wanted is None) for t in plan.tables)


def table_versions(
    planned: Mapping[str, Iterable[PlannedTableName]],
    version_states: MigrationStates,
    others: Collection[str],
) -> dict[TableName, TableVersions]:
    """Every table that is applied or pending, by its name in the state that the history has.

    :param planned: the tables of each plan, by version in order.
    :param others: versions that were applied from other files; the plans have the files that were not.
    """
    states = {m.version: m.state for m in version_states.migrations}
    trails: dict[TableName, TableVersions] = {}
    now: dict[TableName, TableName] = {}
    for version, tables in planned.items():
        if version in others:
            continue
        is_applied = states.get(version) in COMPLETE_STATES
        for table in tables:
            before = now.pop(table.formerly, table.formerly) if table.formerly else None
            if is_applied:
                trail = trails.pop(before, TableVersions()) if before else TableVersions()
                trail.applied = version
                shown = table.declared
            else:
                # Until a rename is applied, a table has its current name.
                shown = before or table.declared
                trail = trails.pop(shown, TableVersions())
                # One that was rolled back waits for a redo: no `apply` brings it.
                if states.get(version) not in ("held", "abandoned"):
                    trail.pending.append(version)
            if not table.is_dropped or not is_applied:
                trails[shown] = trail
                now[table.declared] = shown
    return trails


def add_recorded_tables(
    trails: dict[TableName, TableVersions],
    known: History,
    version_states: MigrationStates,
    others: Collection[str],
) -> None:
    """Complete the trails with the tables of applied versions whose files are missing, from their records."""
    for migration in version_states.migrations:
        if migration.state != "missing" and migration.version not in others:
            continue
        with suppress(HistoryError):
            record = known.undo_record(Version.parse(migration.version))
            for undo in record.tables if record is not None else ():
                name = undo.declared_after
                if name is not None and name in known.state.tables:
                    trail = trails.setdefault(name, TableVersions())
                    if trail.applied is None or int(trail.applied) < int(migration.version):
                        trail.applied = migration.version
