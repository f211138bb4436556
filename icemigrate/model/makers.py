"""What a table bears of the migration that made it, and where tables wait that a migration dropped."""

from __future__ import annotations

from icemigrate.model.names import TableName
from icemigrate.model.table import Table

CREATED_BY_PROPERTY = "icemigrate.created-by"
"""On a table that a migration made: :func:`made_by`.  A run that died between the creation and its record
finds its own table by it and goes on, instead of meeting a stranger."""
TRASH_NAMESPACE = "icemigrate_trash"
"""Where dropped tables wait until ``maintain`` empties it."""


def made_by(project: str, version: str) -> str:
    """What a table that a migration makes bears."""
    return f"{project}/{version}"


def maker_of(table: Table) -> str | None:
    """What :func:`made_by` wrote on a table; ``None`` where no migration made it."""
    return table.properties.get(CREATED_BY_PROPERTY)


def project_of(table: Table) -> str | None:
    """Whose migration made a table; ``None`` where none did."""
    maker = maker_of(table)
    return None if maker is None else maker.rpartition("/")[0]


def owner_of(table: Table) -> str | None:
    """The project that owns a table; ``None`` where no project does.

    Releases that knew no owner left only who made a table.
    """
    return table.owner or project_of(table)


def trash_name(name: TableName, project: str, version: str) -> TableName:
    """What a table is called in the trash.

    :param version: of the migration that dropped it, or of the one that made it and was taken back.
    """
    return TableName((TRASH_NAMESPACE,), "__".join((*name.namespace, name.name, project, version)))


def trash_names(name: TableName, project: str, version: str) -> tuple[TableName, TableName]:
    """All names that a table may have in the trash.

    The second one is of releases that left the project out of the name.
    """
    older = TableName((TRASH_NAMESPACE,), "__".join((*name.namespace, name.name, version)))
    return trash_name(name, project, version), older
