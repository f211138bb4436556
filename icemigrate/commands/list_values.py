"""The values of lists that are not in the project file, for commands that plan in an environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from icemigrate.commands.project_files import load_unapplied
from icemigrate.diagnostics import format_count
from icemigrate.errors import IcemigrateError, UsageError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.files.migration_folder import LoadedMigrations
from icemigrate.files.parse.file_phrases import shorten_text
from icemigrate.files.read.list_sources import (
    VALUE_RULE,
    ListSource,
    ListValues,
    as_list_values,
    by_list_name,
    is_list_value,
    merge_list_values,
)
from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.project import storage_properties
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
            values[name] = given[name] if name in given else _values(session, history, name, source, seen)
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


def recorded_values(history: History) -> Mapping[str, tuple[str, ...]]:
    """The values of lists for which any version is recorded, by the names of the lists."""
    found: tuple[ListValues, ...] = ()
    for applied in history.applied:
        found = merge_list_values(found, applied.list_values)
    return by_list_name(found)


def _values(
    session: EnvironmentSession, history: History, name: str, source: ListSource, seen: Sequence[str] | None
) -> tuple[str, ...]:
    """The values of a list now."""
    if source.values is not None:
        return source.values
    if source.kind == "query":
        return _queried(session, name, source.text)
    from icemigrate.pipeline.seen_tenants import seen_tenants

    # A tenant that the log had once stays one: its segments and the totals can be removed.
    recorded = (one for applied in history.applied for one in applied.list_values if one.name == name)
    known = dict.fromkeys(value for one in recorded for value in one.values)
    if seen is None:
        seen = seen_tenants(session.project.pipeline, storage_properties(session.environment))
    return tuple({**known, **dict.fromkeys(seen)})


def _queried(session: EnvironmentSession, name: str, text: str) -> tuple[str, ...]:
    """The values of a query, sorted.

    :raises IcemigrateError: the query cannot run, or its rows cannot be values.
    """
    from icemigrate.table_data.query_tables import query_sql
    from icemigrate.table_data.table_session import open_tables

    try:
        with open_tables(session.project, session.environment.name) as tables:
            rows = query_sql(tables, text)
    except IcemigrateError as error:
        raise UsageError(f"the query of the list `{name}`: {error.message}", error.hint) from error
    if rows.num_columns != 1:
        raise UsageError(
            f"the query of the list `{name}` has {format_count(rows.num_columns, 'column')}",
            "select the column of the values",
        )
    values = rows.column(0).unique().to_pylist()
    for value in values:
        if value is None or isinstance(value, bool) or not is_list_value(str(value)):
            text = "NULL" if value is None else str(value)
            raise UsageError(
                f"the query of the list `{name}`: {shorten_text(text)} cannot be a value", VALUE_RULE
            )
    found = [str(value) for value in values]
    return tuple(sorted(found))
