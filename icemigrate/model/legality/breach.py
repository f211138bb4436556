"""A breach of a rule, and what the rules look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.model.names import Path, format_path
from icemigrate.model.schema import Entry, index
from icemigrate.model.table import Table
from icemigrate.model.types import Field, Struct


class Breach(Frozen):
    """What makes a table one that must not be, or should not.

    :param rule: permanent kebab-case identifier.
    :param subject: path of keys as they stand in a migration file, e.g.
        ``("columns", "address.zip", "type")``.
    :param message: one sentence, naming the offending word.
    :param hint: the way out.
    :param is_warning: the table works, but somebody will be sorry.
    """

    rule: str
    subject: tuple[str, ...]
    message: str
    hint: str
    is_warning: bool = False


class View(Frozen, dict=True):
    """A table as the rules look at it.

    :param before: the table that it comes from; ``None`` where it is new.
    :param written: the table as it is when the migration writes its rows; ``None`` where it writes none.
    """

    table: Table
    before: Table | None
    written: Table | None = None

    @cached_property
    def fields(self) -> Mapping[int, Entry]:
        """All fields by id."""
        return index(self.table.schema)

    @cached_property
    def walked(self) -> tuple[tuple[Path, Field], ...]:
        """Every field with its path, parents first; walked once for all rules."""
        return tuple(self.table.schema.walk())

    @cached_property
    def paths(self) -> Mapping[str, int]:
        """Field ids by dotted name, as Iceberg looks names up (no quoting there)."""
        return {".".join(entry.path): field_id for field_id, entry in self.fields.items()}

    def above(self, entry: Entry) -> Iterator[Entry]:
        """The fields that a field stands in, nearest first."""
        while entry.parent is not None:
            entry = self.fields[entry.parent]
            yield entry

    def in_container(self, entry: Entry) -> bool:
        """Whether a list or a map stands somewhere above the field."""
        return any(not isinstance(e.field.type, Struct) for e in self.above(entry))


Rule: TypeAlias = Callable[[View], Iterator[Breach]]


def column(path: Path, *aspect: str) -> tuple[str, ...]:
    """The subject of a column, or of one aspect of it."""
    return ("columns", format_path(path), *aspect)
