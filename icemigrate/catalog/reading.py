"""What the readers have in common."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from icemigrate.catalog.files import damaged
from icemigrate.model.json_form import BadMetadata
from icemigrate.model.metadata import table_from_json
from icemigrate.model.names import TableName
from icemigrate.model.table import Table


def to_table(name: TableName, json: Any, location: str | None) -> Table:
    """The table of a metadata file.

    :raises MetadataError: the metadata is damaged; the message names the table, the file and the part.
    """
    try:
        return table_from_json(json, name)
    except BadMetadata as error:
        raise damaged(name, error, location) from error


def joined_location(warehouse: str | None, name: TableName) -> str:
    """``warehouse/namespace/table``, as Iceberg's JDBC catalog places a table."""
    return "/".join([(warehouse or "").rstrip("/"), *name.namespace, name.name])


@contextmanager
def many_objects() -> Iterator[None]:
    """No search for garbage while many values are made.

    None of them is in a cycle, and all would be looked at again and again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
