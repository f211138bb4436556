"""The catalog of an environment as the desired state of ``diff``."""

from __future__ import annotations

from icemigrate.catalog.capabilities import server_managed_predicate
from icemigrate.catalog.readable_tables import load_readable_tables
from icemigrate.commands.desired_sources import DesiredState
from icemigrate.desired_state.desired_table import DesiredTable
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import TRASH_NAMESPACE, Table, owner_of
from icemigrate.iceberg.table_properties import is_history
from icemigrate.planning.adopted_entries import declarable_table
from icemigrate.project.project_values import Project
from icemigrate.redaction import is_secret_property


def read_environment_state(project: Project, environment: str) -> DesiredState:
    """The tables of an environment, under their declared names.

    Left out are icemigrate's own tables, tables of other projects, locations, branches and tags, which belong
    to one catalog, properties that the catalog or the environment's overrides set, and credentials.

    :raises UsageError: there is no such environment.
    :raises CatalogError: the catalog cannot be read.
    """
    with open_environment(project, environment) as session:
        loaded = load_readable_tables(session.catalog, _candidates(session))
        notes = [f"{name} cannot be read and is not compared" for name in sorted(loaded.unreadable)]
        found = list[DesiredTable]()
        for name in sorted(loaded.tables):
            table = loaded.tables[name]
            if table is None or is_history(table.properties) or owner_of(table) not in (None, project.name):
                continue
            found.append(_desired(session, table))
        return DesiredState(tuple(found), not loaded.unreadable, notes=tuple(notes))


def _candidates(session: EnvironmentSession) -> list[TableName]:
    names = session.names
    own = {names.table(session.history_name), session.history_name}
    return [
        name
        for name in sorted(session.catalog.tables())
        if name not in own
        and name.namespace[:1] != (TRASH_NAMESPACE,)
        and names.table(names.declared(name)) == name
    ]


def _desired(session: EnvironmentSession, table: Table) -> DesiredTable:
    names = session.names
    overrides = names.adjust(Table(table.name, Schema())).properties
    is_set = server_managed_predicate(session.catalog.capabilities)

    def is_left_out(key: str, value: str) -> bool:
        return is_set(key, value) or key in overrides or is_secret_property(key, value)

    own = declarable_table(table, is_left_out)
    return DesiredTable(
        replace(own, name=names.declared(table.name)),
        is_whole=True,
        states_references=False,
    )
