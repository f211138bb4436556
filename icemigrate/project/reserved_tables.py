"""The tables that a project reserves for icemigrate: histories, and the tables in the trash."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from icemigrate.errors import UsageError
from icemigrate.iceberg.names import TableName
from icemigrate.planning.planning_context import ReservedNames
from icemigrate.project.namespace_mapping import NamespaceMapping
from icemigrate.project.project_values import Environment, Project


def reserved_names(
    project: Project,
    environments: Collection[Environment] | None = None,
    others: Collection[TableName] = (),
) -> ReservedNames:
    """The names that a migration of the project may not use.

    :param environments: the environments to consider; by default all of the project.
    :param others: declared names of tables that are histories of other projects.
    """
    history = TableName.parse(project.history)
    own = {**dict.fromkeys(others, "holds a project's history"), history: "holds this project's history"}
    for environment in project.environments.values() if environments is None else environments:
        # Other code reports a variable in a name that is not set here.
        with suppress(UsageError):
            mapped = NamespaceMapping(environment).declared(history)
            own.setdefault(mapped, f"is `{history}` in environment `{environment.name}`, the history")
    return ReservedNames(own, is_trash_reserved=True)
