"""What the readers have in common."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from icemigrate.catalog.files import damaged
from icemigrate.frozen import replace
from icemigrate.model.json_form import BadMetadata
from icemigrate.model.metadata import table_from_json
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.writers import writers_of


def to_table(name: TableName, json: Any, location: str | None, with_writers: bool = False) -> Table:
    """The table of a metadata file.

    :param with_writers: with those who wrote it up to now.
    :raises MetadataError: the metadata is damaged; the message names the table, the file and the part.
    """
    try:
        table = table_from_json(json, name)
    except BadMetadata as error:
        raise damaged(name, error, location) from error
    return replace(table, writers=writers_of(json, time.time_ns() // 1_000_000)) if with_writers else table


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
