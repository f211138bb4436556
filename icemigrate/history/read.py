"""Read a project's history, by the catalog port: one metadata file, no rows, no writing."""

from __future__ import annotations

from icemigrate.catalog.port import Catalog
from icemigrate.errors import HistoryError
from icemigrate.frozen import replace
from icemigrate.history.head import head_of
from icemigrate.history.properties import History, decode
from icemigrate.history.record import check_columns
from icemigrate.model.names import TableName
from icemigrate.model.table import Table


def read(catalog: Catalog, name: TableName, project: str) -> History | None:
    """The project's history; ``None`` before the first apply.

    :param name: of the history table.
    :raises HistoryError: the table is none, or another project's, was altered, or is from a newer icemigrate.
    :raises CatalogError: as the catalog does.
    """
    table = catalog.load((name,))[name]
    return None if table is None else history_of(table, name, project)


def history_of(table: Table, name: TableName, project: str) -> History:
    """What a history table says.

    :raises HistoryError: as :func:`read`.
    """
    try:
        history = decode(table.properties)
        head = head_of(table.snapshot)
        check_columns(table.schema)
    except HistoryError as error:
        raise HistoryError(f"the history `{name}` cannot be used: {error.message}", error.hint) from error
    if history.project != project:
        raise HistoryError(
            f"the history `{name}` belongs to project `{history.project}`, not to `{project}`",
            "give this project its own with `history: NAMESPACE.TABLE` in the project file",
        )
    return replace(history, head=head.id, lock=head.lock)
