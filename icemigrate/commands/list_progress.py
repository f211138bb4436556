"""How far applied migrations are applied to the current values of their lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.files.read.list_sources import ListSource, by_list_name
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.project.project_values import Project
from icemigrate.render.phrases import extension_lines, left_value_lines
from icemigrate.results.status_results import ListProgress


def list_progress(project: Project, history: History) -> Mapping[str, tuple[ListProgress, ...]]:
    """The lists of each applied version, by version.

    :param project: with the values of its lists.
    """
    found = {}
    for applied in history.applied:
        if applied.state is not VersionState.APPLIED or not applied.list_values:
            continue
        recorded = by_list_name(applied.list_values)
        lists = (_progress(name, values, project, history) for name, values in recorded.items())
        found[applied.version.text] = tuple(one for one in lists if one is not None)
    return found


def list_notes(project: Project, history: History) -> Iterator[Diagnostic]:
    """Notes of a plan about values that lists got and lost since migrations were applied."""
    progress = list_progress(project, history)
    for line in extension_lines(progress, is_plan=True):
        yield Diagnostic("new-list-values", line, severity=Severity.NOTE)
    for line in left_value_lines(progress):
        yield Diagnostic("left-list-values", line, severity=Severity.NOTE)


def _progress(
    name: str, recorded: tuple[str, ...], project: Project, history: History
) -> ListProgress | None:
    source = project.lists.get(name)
    if not isinstance(source, ListSource) or source.values is None:
        return None
    values, before = set(source.values), set(recorded)
    left = [value for value in recorded if value not in values]
    tables = [str(table) for table in history.state.tables] if left else []
    return ListProgress(
        list=name,
        applied=len(values & before),
        values=len(values),
        new=tuple(value for value in source.values if value not in before),
        left=tuple(value for value in left if any(value in table for table in tables)),
    )
