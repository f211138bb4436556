"""A breach of a rule, and what the rules look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.model.names import Path, format_path
from icemigrate.model.schema import Entry, Schema, apart, index
from icemigrate.model.table import Table
from icemigrate.model.types import Field, Struct, children, is_nested


class Branches(Frozen):
    """Branches of others whose files lack a field."""

    field_id: int
    names: tuple[str, ...]


class Breach(Frozen):
    """What makes a table one that must not be, or should not.

    :param rule: permanent kebab-case identifier.
    :param subject: path of keys as they stand in a migration file, e.g.
        ``("columns", "address.zip", "type")``.
    :param message: one sentence, naming the offending word.
    :param hint: the way out.
    :param is_warning: the table works, but somebody will be sorry.
    :param branches: where these are in the way: who knows SQL tells by them how to mend it, see
        :mod:`icemigrate.data.on_branches`.
    """

    rule: str
    subject: tuple[str, ...]
    message: str
    hint: str
    is_warning: bool = False
    branches: Branches | None = None


class View(Frozen, dict=True):
    """A table as the rules look at it.

    :param before: the table that it comes from; ``None`` where it is new.
    :param written: the table as it is when the migration writes its rows; ``None`` where it writes none.
    :param is_whole: whether all fields are looked at, and not only those that are new or changed: what a
        table was guilty of before is not held against it.
    """

    table: Table
    before: Table | None
    written: Table | None = None
    is_whole: bool = False

    @cached_property
    def fields(self) -> Mapping[int, Entry]:
        """All fields by id."""
        return index(self.table.schema)

    @cached_property
    def walked(self) -> tuple[tuple[Path, Field], ...]:
        """The fields to look at with their paths, parents first; walked once for all rules."""
        return tuple((entry.path, entry.field) for _, entry in apart(self.table.schema, self._known))

    @cached_property
    def siblings(self) -> tuple[tuple[Path, tuple[Field, ...]], ...]:
        """The fields of the table and of every struct, list and map in which there is one to look at."""
        nested = ((path, children(field.type)) for path, field in self.walked if is_nested(field.type))
        return (((), self.table.schema.fields), *nested)

    @property
    def _known(self) -> Schema:
        """What needs no look; an older format version allows less, though."""
        before = self.before
        if self.is_whole or before is None or before.format_version > self.table.format_version:
            return Schema()
        return before.schema

    def find(self, name: str) -> int | None:
        """The id of the field of a dotted name, as Iceberg looks names up (no quoting there)."""
        return _find(self.table.schema.fields, name)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The dotted names of all fields."""
        return tuple(".".join(entry.path) for entry in self.fields.values())

    def above(self, entry: Entry) -> Iterator[Entry]:
        """The fields that a field stands in, nearest first."""
        while entry.parent is not None:
            entry = self.fields[entry.parent]
            yield entry

    def in_container(self, entry: Entry) -> bool:
        """Whether a list or a map stands somewhere above the field."""
        return any(not isinstance(e.field.type, Struct) for e in self.above(entry))


def _find(fields: tuple[Field, ...], name: str) -> int | None:
    for field in fields:
        if field.name == name:
            return field.id
        if is_nested(field.type) and name.startswith(f"{field.name}."):
            found = _find(children(field.type), name[len(field.name) + 1 :])
            if found is not None:
                return found
    return None


Rule: TypeAlias = Callable[[View], Iterator[Breach]]


def column(path: Path, *aspect: str) -> tuple[str, ...]:
    """The subject of a column, or of one aspect of it."""
    return ("columns", format_path(path), *aspect)
