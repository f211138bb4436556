"""Lists whose values are not written in the project file: a file, a query, or the tenants of a log.

A migration that names such a list is a template.  Its checksum counts where the values come from, and the
history records the values for which it was applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.wal.entries import TENANT_RULE, is_tenant_id

VALUE_RULE = TENANT_RULE
"""The hint of messages about other values: those of a list can be the tenants of a log."""

SourceKind: TypeAlias = Literal["seen", "file", "query"]


class ListSource(Frozen):
    """A list with values from elsewhere.

    :param text: the word ``seen``, the path of the file, or the text of the query.
    :param column: of a file in CSV with a header.
    :param values: ``None`` where they are unknown, as they are without a catalog.
    :param named: further values, which the names of tables have that files change or a user names.
    """

    kind: SourceKind
    text: str
    values: tuple[str, ...] | None = None
    column: str | None = None
    named: tuple[str, ...] = ()

    @property
    def counted(self) -> str:
        """What checksums count: ``seen``, ``file tenants.csv`` or ``query SELECT …``."""
        if self.kind == "seen":
            return self.text
        return f"{self.kind} {self.text}" + (f", column {self.column}" if self.column else "")

    def values_of(self, variable: str) -> tuple[str, ...]:
        """The values, or a placeholder where they are unknown, and those that names have."""
        known = (placeholder(variable),) if self.values is None else self.values
        return (*known, *(value for value in self.named if value not in known))


def placeholder(variable: str) -> str:
    """The text in place of a value that is not known."""
    return f"any_{variable}"


def is_list_value(text: str) -> bool:
    """Whether a text from elsewhere can be a value: a part of a name, which it cannot leave."""
    return is_tenant_id(text)


class ListValues(Frozen):
    """The values of one list for which a migration is applied.

    :param name: of the list in the project file.
    """

    name: str
    values: tuple[str, ...]


def as_list_values(values: Mapping[str, Iterable[str]]) -> tuple[ListValues, ...]:
    """The values of several lists, by the names of the lists."""
    return tuple(ListValues(name, tuple(values[name])) for name in sorted(values))


def by_list_name(recorded: Iterable[ListValues]) -> dict[str, tuple[str, ...]]:
    """The inverse of :func:`as_list_values`."""
    return {one.name: one.values for one in recorded}


def merge_list_values(first: Iterable[ListValues], second: Iterable[ListValues]) -> tuple[ListValues, ...]:
    """The values of both, each once."""
    merged: dict[str, dict[str, None]] = {}
    for one in (*first, *second):
        merged.setdefault(one.name, {}).update(dict.fromkeys(one.values))
    return as_list_values(merged)
