"""How far applied migrations are applied to the current values of their lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import TypeAlias

from icemigrate.commands.list_values import with_values
from icemigrate.commands.project_files import load_files
from icemigrate.commands.template_names import RecordedValues, follow_name, lacks_values
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.files.read.list_sources import ListSource, by_list_name
from icemigrate.files.read.migration_file import TableEntry
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.names import TableName
from icemigrate.project.project_values import Project
from icemigrate.render.phrases import extension_lines, left_value_lines
from icemigrate.results.status_results import ListProgress

ListValue: TypeAlias = tuple[str, str]
"""The name of a list, and one of its values."""


def list_progress(project: Project, history: History) -> Mapping[str, tuple[ListProgress, ...]]:
    """The lists of each applied version, by version.

    :param project: with the values of its lists.
    :raises IcemigrateError: a value left its list, and the folder of the files cannot be read.
    """
    recorded = {
        applied.version: by_list_name(applied.list_values)
        for applied in history.applied
        if applied.state is VersionState.APPLIED and applied.list_values
    }
    left = {
        (name, value)
        for lists in recorded.values()
        for name, values in lists.items()
        if (values_now := _values(project, name)) is not None
        for value in set(values).difference(values_now)
    }
    kept = left & _values_with_tables(project, history, recorded) if left else set[ListValue]()
    found = {}
    for version, lists in recorded.items():
        progress = (_progress(name, values, project, kept) for name, values in lists.items())
        found[version.text] = tuple(one for one in progress if one is not None)
    return found


def list_notes(project: Project, history: History) -> Iterator[Diagnostic]:
    """Notes of a plan about values that lists got and lost since migrations were applied."""
    progress = list_progress(project, history)
    for line in extension_lines(progress, is_plan=True):
        yield Diagnostic("new-list-values", line, severity=Severity.NOTE)
    for line in left_value_lines(progress):
        yield Diagnostic("left-list-values", line, severity=Severity.NOTE)


def _progress(
    name: str, applied_values: tuple[str, ...], project: Project, kept: Set[ListValue]
) -> ListProgress | None:
    """How far one version is applied to the values of a list.

    :param kept: values that left their list and have a table.
    """
    values = _values(project, name)
    if values is None:
        return None
    return ListProgress(
        list=name,
        applied=len(set(values).intersection(applied_values)),
        values=len(values),
        new=tuple(value for value in values if value not in set(applied_values)),
        left=tuple(value for value in applied_values if (name, value) in kept),
    )


def _values(project: Project, name: str) -> tuple[str, ...] | None:
    """The values of a list now; ``None`` where they are in the project file, or unknown."""
    source = project.lists.get(name)
    return source.values if isinstance(source, ListSource) else None


def _values_with_tables(project: Project, history: History, recorded: RecordedValues) -> set[ListValue]:
    """The values for which applied templates declare a table that exists, as later migrations rename it."""
    applied_values: dict[str, dict[str, None]] = {}
    for lists in recorded.values():
        for name, values in lists.items():
            applied_values.setdefault(name, {}).update(dict.fromkeys(values))
    earlier = with_values(project, {name: tuple(values) for name, values in applied_values.items()})
    versions = {one.version for one in history.applied if one.state is VersionState.APPLIED}
    owners: dict[TableName, TableEntry] = {}
    for file in load_files(earlier, is_expansion_limited=False).migrations:
        for entry in file.tables if file.version in versions else ():
            if not lacks_values(entry, recorded.get(file.version, {})):
                follow_name(owners, entry)
    return {
        (name, owner.variables[variable])
        for table, owner in owners.items()
        if table in history.state.tables
        for variable, name in owner.sources.items()
    }
