"""The names in the catalog that a plan reads, and the namespaces that it looks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.history.history_properties import History
from icemigrate.iceberg.names import BadName, TableName, parse_path
from icemigrate.iceberg.table import Table, aside_name, trash_names
from icemigrate.planning.replay import exchanged_names, mentioned_tables


def names_to_load(
    session: EnvironmentSession, history: History, pending: Sequence[MigrationFile], redos: Iterable[str]
) -> set[TableName]:
    """The names that the tables of pending files have, had or may have in between.

    :param redos: the versions that are applied again.
    """
    # An empty plan needs no tables.
    names = mentioned_tables(pending, history.state) if pending else frozenset()
    in_catalog, project = session.names.table, session.project.name
    physical = {in_catalog(name) for name in names}
    # A table that it made the first time was put into the trash.
    physical |= {t for v in redos for n in physical for t in trash_names(n, project, v)}
    # A table that exchanges its name may have the name in between, and no other table may have it.
    aside = {aside_name(n, project, intent.version.text) for intent in history.intents for n in physical}
    aside |= {
        aside_name(in_catalog(n), project, file.version.text)
        for file in pending
        for n in exchanged_names(file)
    }
    return physical | aside


def existing_namespaces(
    session: EnvironmentSession,
    history: History,
    pending: Sequence[MigrationFile],
    actual: Mapping[TableName, Table | None],
) -> frozenset[tuple[str, ...]]:
    """The existing ones of the namespaces that a plan of the pending files could create.

    The catalog is asked only about those without a loaded table: it may have thousands of other namespaces.

    :param actual: the loaded tables, by their name in the catalog; ``None`` for a missing table.
    """
    declared = {*history.state.namespaces, *_declared_namespaces(pending)}
    wanted = {*map(session.names.namespace, declared), *(name.namespace for name in actual)}
    there = {name.namespace for name, table in actual.items() if table is not None}
    unknown = wanted - there
    return frozenset((*there, *(session.catalog.namespaces(unknown) if unknown else ())))


def _declared_namespaces(files: Iterable[MigrationFile]) -> Iterator[tuple[str, ...]]:
    for entry in (entry for file in files for entry in file.namespaces):
        try:
            yield parse_path(entry.name)
        except BadName:
            continue  # replay reports it
