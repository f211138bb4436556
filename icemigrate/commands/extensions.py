"""Applied migrations whose lists have new values: the parts of their files that create the new tables.

A version is extended in the order of its number, so that a new tenant's tables go through the same changes as
those of the first tenants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from icemigrate.commands.project_files import load_files, raise_if_errors
from icemigrate.commands.template_names import follow_name, lacks_values, name_collisions
from icemigrate.files.read.list_sources import (
    ListSource,
    ListValues,
    by_list_name,
    merge_list_values,
)
from icemigrate.files.read.migration_file import MigrationFile, TableEntry
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import AppliedVersion, VersionState
from icemigrate.iceberg.names import TableName
from icemigrate.project.project_values import Project


class _Extended(Frozen):
    """An applied version with new values of its lists.

    :param recorded: the values for which it is applied.
    :param wanted: those for which it is to be applied.
    """

    version: Version
    recorded: Mapping[str, tuple[str, ...]]
    wanted: tuple[ListValues, ...]

    def has(self, entry: TableEntry) -> bool:
        """Whether a copy of a template has a new value, and only values for which it is to be applied."""
        wanted = by_list_name(self.wanted)
        return lacks_values(entry, self.recorded) and not lacks_values(entry, wanted)

    def without(self, blocked: frozenset[tuple[str, str]]) -> _Extended:
        """The version without values that wait for other migrations."""
        wanted = (
            ListValues(one.name, tuple(v for v in one.values if (one.name, v) not in blocked))
            for one in self.wanted
        )
        return replace(self, wanted=tuple(wanted))

    @property
    def is_complete(self) -> bool:
        """Whether there is no new value."""
        return all(set(one.values) <= set(self.recorded.get(one.name, ())) for one in self.wanted)


def extension_files(project: Project, history: History) -> tuple[MigrationFile, ...]:
    """The parts of applied files for new values of lists, in order.

    :param project: with the values of its lists.
    :raises Mistakes: a file has an error, or the table of a new value has the name of another one.
    """
    applied = [found for one in history.applied if (found := _extended(project, history, one)) is not None]
    if all(one.is_complete for one in applied):
        return ()
    loaded = load_files(project)
    raise_if_errors(loaded.diagnostics)
    blocked = _blocked_values(project, history, loaded.migrations, applied)
    files = {file.version: file for file in loaded.migrations}
    there = sorted((one for one in applied if one.version in files), key=lambda one: one.version)
    parts = _parts([(one.without(blocked), files[one.version]) for one in there])
    return tuple(parts)


def _blocked_values(
    project: Project, history: History, files: Sequence[MigrationFile], applied: Sequence[_Extended]
) -> frozenset[tuple[str, str]]:
    """New values, each with its list, whose tables have names that pending migrations free first.

    :raises Mistakes: the table of a new value has the name of another one.
    """
    recorded = {
        one.version: by_list_name(one.list_values)
        for one in history.applied
        if one.state is VersionState.APPLIED
    } | {one.version: one.recorded for one in applied}
    skipped = {one.version for one in history.applied} - recorded.keys()
    found = [one for one in name_collisions(project, files, recorded, skipped) if one.is_new_value]
    raise_if_errors(tuple(one.diagnostic(project) for one in found if not one.is_freed))
    return frozenset(
        (name, one.entry.variables[variable]) for one in found for variable, name in one.entry.sources.items()
    )


def match_list_values(
    files: Sequence[MigrationFile], history: History, project: Project
) -> tuple[MigrationFile, ...]:
    """Pending files that match tables by a pattern, with the values of the lists of earlier versions.

    Their patterns also fit tables of values that a list gets later.
    """
    known = tuple(one for applied in history.applied for one in applied.list_values)
    found = []
    for file in files:
        known = merge_list_values(known, file.lists)
        matches = any(entry.match is not None for entry in file.tables)
        named = {one.name for one in known}
        values = tuple(one for one in _known(project) if one.name in named) if matches else ()
        found.append(replace(file, lists=merge_list_values(file.lists, values)) if values else file)
    return tuple(found)


def _known(project: Project) -> Iterator[ListValues]:
    for name, source in project.lists.items():
        if isinstance(source, ListSource) and source.values is not None:
            yield ListValues(name, source.values)


def _extended(project: Project, history: History, applied: AppliedVersion) -> _Extended | None:
    """An applied version with lists, also where a run that extends it was interrupted."""
    began: tuple[ListValues, ...] = ()
    intent = next((one for one in history.intents if one.version == applied.version), None)
    if intent is not None and intent.extends:
        assert intent.was is not None, "an applied version is extended"
        began, applied = applied.list_values, intent.was
    elif intent is not None or applied.state is not VersionState.APPLIED:
        return None
    recorded = by_list_name(applied.list_values)
    if not recorded:
        return None
    wanted = tuple(one for one in _known(project) if one.name in recorded)
    return _Extended(
        applied.version, recorded, merge_list_values(applied.list_values, merge_list_values(began, wanted))
    )


def _parts(versions: Sequence[tuple[_Extended, MigrationFile]]) -> Iterator[MigrationFile]:
    """The part of each file that its version lacks."""
    names: dict[TableName, TableEntry] = {}
    for extended, file in versions:
        is_new = [entry for entry in file.tables if entry.sources and extended.has(entry)]
        entries = list(is_new)
        for entry in (one for one in file.tables if one.match is not None):
            fitting = (name for name in names if entry.fits(name)) if not extended.is_complete else ()
            entries += [replace(entry, name=str(name), match=None) for name in fitting]
        for entry in is_new:
            follow_name(names, entry)
        if not extended.is_complete:
            yield replace(
                file, tables=tuple(entries), lists=extended.wanted, whole_checksum=file.checksum, templates=()
            )
