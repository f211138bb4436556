"""The values of lists that are not in the project file, for commands that plan in an environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from icemigrate.commands.project_files import load_unapplied
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.files.migration_folder import LoadedMigrations
from icemigrate.files.read.list_sources import ListSource, ListValues, as_list_values, by_list_name
from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.project.project_values import Project


def load_with_list_values(
    session: EnvironmentSession,
    history: History,
    pinned: Iterable[ListValues] = (),
    *,
    seen: Sequence[str] | None = None,
) -> tuple[EnvironmentSession, LoadedMigrations]:
    """The migration files, with the values of the lists that they name.

    Only lists that a pending or an applied migration names are read.

    :param pinned: values that are used as they are, such as those of the plan that is made again.
    :param seen: tenants that are new in the log; ``None`` to read all of the log.
    :returns: the session, whose project has the values; and the files, those not parsed that are applied.
    :raises Mistakes: a file has an error.
    :raises IcemigrateError: the values of a list cannot be read.
    """
    loaded = load_unapplied(session.project, history.applied)
    named = {one.name for file in loaded.migrations for one in file.lists}
    named |= {one.name for applied in history.applied for one in applied.list_values}
    if not named:
        return session, loaded
    given = by_list_name(pinned)
    values = dict[str, tuple[str, ...]]()
    for name in sorted(named):
        source = session.project.lists.get(name)
        if isinstance(source, ListSource):
            values[name] = given[name] if name in given else _values(session.project, history, name, seen)
    project = with_values(session.project, values)
    if any(file.lists for file in loaded.migrations):
        loaded = load_unapplied(project, history.applied)
    return dataclasses.replace(session, project=project), loaded


def with_values(project: Project, values: Mapping[str, tuple[str, ...]]) -> Project:
    """The project with values of its lists that name a source."""
    lists = {
        name: replace(one, values=values[name]) if isinstance(one, ListSource) and name in values else one
        for name, one in project.lists.items()
    }
    return dataclasses.replace(project, lists=lists)


def known_values(project: Project) -> tuple[ListValues, ...]:
    """The values of all lists that name a source, where they are known."""
    found = {n: one.values for n, one in project.lists.items() if isinstance(one, ListSource)}
    return as_list_values({name: values for name, values in found.items() if values is not None})


def _values(project: Project, history: History, name: str, seen: Sequence[str] | None) -> tuple[str, ...]:
    """The values of a list now.

    A tenant that the log had once stays one: its segments and the totals can be removed.
    """
    from icemigrate.pipeline.seen_tenants import seen_tenants

    recorded = (one for applied in history.applied for one in applied.list_values if one.name == name)
    known = dict.fromkeys(value for one in recorded for value in one.values)
    now = seen_tenants(project.pipeline) if seen is None else seen
    return tuple({**known, **dict.fromkeys(now)})
