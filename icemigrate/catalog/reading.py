"""What the readers have in common."""

from __future__ import annotations

import time
from typing import Any

from icemigrate.catalog.files import damaged
from icemigrate.frozen import replace
from icemigrate.model.json_form import BadMetadata
from icemigrate.model.metadata import table_from_json
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.writers import writers_of


def to_table(
    name: TableName, json: Any, location: str | None, with_writers: bool = False, known: Table | None = None
) -> Table:
    """The table of a metadata file.

    :param with_writers: with those who wrote it up to now.
    :param known: the table as it is known to be, see :meth:`~icemigrate.catalog.port.Catalog.load`.
    :raises MetadataError: the metadata is damaged; the message names the table, the file and the part.
    """
    try:
        table = table_from_json(json, name, known)
    except BadMetadata as error:
        raise damaged(name, error, location) from error
    return replace(table, writers=writers_of(json, time.time_ns() // 1_000_000)) if with_writers else table


def joined_location(warehouse: str | None, name: TableName) -> str:
    """``warehouse/namespace/table``, as Iceberg's JDBC catalog places a table."""
    return "/".join([(warehouse or "").rstrip("/"), *name.namespace, name.name])
