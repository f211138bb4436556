"""Common parts of the catalog readers."""

from __future__ import annotations

import time
from typing import Any

from icemigrate.catalog.metadata_files import damaged_metadata_error
from icemigrate.frozen import replace
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.iceberg.snapshot_writers import writers_of
from icemigrate.iceberg.table import Table


def to_table(
    name: TableName, json: Any, location: str | None, with_writers: bool = False, known: Table | None = None
) -> Table:
    """The table of a metadata file.

    :param with_writers: include its recent writers.
    :param known: the recorded table, see :meth:`~icemigrate.catalog.catalog_port.Catalog.load`.
    :raises MetadataError: the metadata is damaged; the message names the table, the file and the part.
    """
    try:
        table = table_from_json(json, name, known)
    except BadMetadata as error:
        raise damaged_metadata_error(name, error, location) from error
    return replace(table, writers=writers_of(json, time.time_ns() // 1_000_000)) if with_writers else table


def joined_location(warehouse: str | None, name: TableName) -> str:
    """``warehouse/namespace/table``, the default location in Iceberg's JDBC catalog."""
    return "/".join([(warehouse or "").rstrip("/"), *name.namespace, name.name])
