"""The names in the catalog that a plan reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.history.history_properties import History
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import aside_name, trash_names
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
