"""Columns of a table of telemetry that nothing fills: rows have no field of their name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from icemigrate.diagnostics import most_similar
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import Field, Type, children
from icemigrate.otlp.attribute_columns import attribute_sources
from icemigrate.otlp.telemetry_types import TELEMETRY_TYPES
from icemigrate.wal.entries import EntryKind


class UnfilledColumn(Frozen):
    """A column, or a field inside one, that is null in every row.

    :param near: the field of telemetry that can be meant: the table has no column for it, and its name is
        similar.
    :param missing: the fields of telemetry at this level that the table has no column for.
    """

    path: FieldPath
    near: str | None
    missing: tuple[str, ...]


def unfilled_columns(
    kind: EntryKind, columns: Sequence[Field], properties: Mapping[str, str]
) -> tuple[UnfilledColumn, ...]:
    """The columns that neither a field of telemetry nor an attribute fills; names are compared exactly.

    :param properties: of the table; some name the attributes that fill columns.
    """
    filled = attribute_sources(properties)
    return tuple(_unfilled([one for one in columns if one.name not in filled], _telemetry_types(kind), ()))


@cache
def _telemetry_types(kind: EntryKind) -> Mapping[str, Type]:
    return {name: parse_type(text) for name, text in TELEMETRY_TYPES[kind].items()}


def _unfilled(
    fields: Sequence[Field], known: Mapping[str, Type], parent: FieldPath
) -> Iterator[UnfilledColumn]:
    names = {one.name for one in fields}
    missing = tuple(name for name in known if name not in names)
    for one in fields:
        path = (*parent, one.name)
        if one.name not in known:
            yield UnfilledColumn(path, most_similar(one.name, missing), missing)
        elif type(one.type) is type(known[one.name]):
            inner = {child.name: child.type for child in children(known[one.name])}
            yield from _unfilled(children(one.type), inner, path)
