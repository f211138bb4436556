"""Namespaces that a migration made, and that its undo leaves empty: they go with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from icemigrate.frozen import Frozen
from icemigrate.model.names import TableName
from icemigrate.model.table import Table

Namespace = tuple[str, ...]


class Contents(Frozen):
    """What is in the catalog's namespaces, before anything is undone.

    :param there: all of them.
    :param tables: what stands right in those that may go.
    """

    there: frozenset[Namespace] = frozenset()
    tables: Mapping[Namespace, frozenset[TableName]] = {}


def left_empty(
    made: Iterable[Namespace], contents: Contents, actual: Mapping[TableName, Table | None]
) -> Iterator[Namespace]:
    """Those of the namespaces that a migration made in which nothing is left, the deepest first.

    What stood there before the migration was never in its record, so it never goes.

    :param actual: the tables as the undo leaves them; a name with ``None`` is free then.
    """
    there = set(contents.there)
    for namespace in sorted(made, key=len, reverse=True):
        before = contents.tables.get(namespace, frozenset())
        now = {table.name for table in actual.values() if table is not None}
        is_left = any(name.namespace == namespace for name in now) or any(
            actual.get(name, name) is not None for name in before
        )
        has_below = any(other[: len(namespace)] == namespace != other for other in there)
        if namespace in there and not is_left and not has_below:
            there.discard(namespace)
            yield namespace
