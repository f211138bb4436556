"""Partition and sort terms, as ``ADD PARTITION FIELD`` and ``WRITE ORDERED BY`` take them."""

from __future__ import annotations

from icemigrate.model.names import Path
from icemigrate.model.partitioning import IDENTITY, VOID, Transform
from icemigrate.model.sorting import ASC, NULLS_FIRST, default_null_order
from icemigrate.sql.names import path_sql

_TIME = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def transform_sql(transform: Transform, source: Path) -> str:
    """A transform of a field: ``id``, ``days(ts)``, ``bucket(16, id)``, ``truncate(4, data)``.

    A void transform cannot be asked for; one that is not known here is written as a function of its name.
    """
    assert transform != VOID, "a void field is what is left of a dropped one"
    if transform == IDENTITY:
        return path_sql(source)
    if transform.width is not None:
        return f"{transform.name}({transform.width}, {path_sql(source)})"
    return f"{_TIME.get(transform.name, transform.name)}({path_sql(source)})"


def sort_sql(transform: Transform, source: Path, direction: str, null_order: str) -> str:
    """A sort term; what goes without saying is left out: ``ts``, ``id DESC``, ``id DESC NULLS FIRST``.

    :param direction: the specification's ``asc`` or ``desc``.
    :param null_order: the specification's ``nulls-first`` or ``nulls-last``.
    """
    text = transform_sql(transform, source) + ("" if direction == ASC else " DESC")
    if null_order == default_null_order(direction):
        return text
    return text + (" NULLS FIRST" if null_order == NULLS_FIRST else " NULLS LAST")
