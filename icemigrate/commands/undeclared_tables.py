"""Tables beside the recorded ones that no migration declares, for a note of ``drift``.

Terraform ignores what is not declared.  Here another client's table can be one that was renamed, or that a
user forgot to import, so its number is shown.  It is no drift: the exit code does not change.
"""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.errors import CatalogError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.files.read.migration_file import AnyFile, MigrationFile
from icemigrate.history.history_properties import History
from icemigrate.iceberg.table import TRASH_NAMESPACE
from icemigrate.planning.replay import mentioned_tables


def count_undeclared_tables(
    session: EnvironmentSession, history: History, files: Sequence[AnyFile]
) -> int | None:
    """The number of tables in the namespaces of recorded tables that neither history nor files have.

    :param files: that are not applied.
    :returns: ``None`` where the catalog does not list a namespace.
    """
    names = session.names
    pending = mentioned_tables((f for f in files if isinstance(f, MigrationFile)), history.state)
    recorded = {names.table(name) for name in history.state.tables}
    known = recorded | {names.table(name) for name in pending}
    known |= {session.history_name, names.table(session.history_name)}
    spaces = {name.namespace for name in recorded if name.namespace[:1] != (TRASH_NAMESPACE,)}
    try:
        return sum(
            name.namespace == space and name not in known
            for space in sorted(spaces)
            for name in session.catalog.tables(space)
        )
    except CatalogError:
        return None
