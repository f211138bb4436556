"""A table as a whole declaration describes it: the result of each reader in this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from icemigrate.diagnostics import FilePosition
from icemigrate.frozen import Frozen
from icemigrate.frozen import field as frozen_field
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Decimal, Field, Fixed, Primitive, Type

UNDECIDED = Primitive("unknown")
"""The type of a field whose source does not say enough."""


class TypeReading(Frozen):
    """The Iceberg type for a type of another tool.

    :param type: ``None`` where the source's type has several meanings.
    :param accepted: names of types that fit too where the table has one of them already; ``decimal`` and
        ``fixed`` without arguments.
    :param question: what a new field needs, where ``type`` is ``None``.
    """

    type: Type | None
    accepted: frozenset[str] = frozenset()
    question: str | None = None


FieldTypes: TypeAlias = Mapping[int, TypeReading]


class DesiredTable(Frozen):
    """A table that the migration leads to.

    :param table: its fields have unique ids, which mean nothing outside of it.
    :param is_whole: whether it states everything; otherwise it states columns and types, which of them are
        required, and some descriptions.
    :param is_ordered: whether the order of its columns counts.
    :param states_references: whether a whole table states its branches and tags.
    :param is_format_stated: whether ``table.format_version`` is stated.
    :param readings: of the fields whose type has more than one meaning, by id.
    :param places: positions of its fields by id.
    :param place: the position of the table; ``None`` where it is not from a file.
    """

    table: Table
    is_whole: bool = False
    is_ordered: bool = True
    is_format_stated: bool = False
    states_references: bool = True
    readings: FieldTypes = frozen_field(default_factory=dict)
    places: Mapping[int, FilePosition] = frozen_field(default_factory=dict)
    place: FilePosition | None = None

    @property
    def name(self) -> TableName:
        """Its name after the migration."""
        return self.table.name

    def place_of(self, field_id: int) -> FilePosition | None:
        """The position of a field, or else of the table."""
        return self.places.get(field_id, self.place)

    def text_of(self, field_id: int) -> str:
        """The path of a field, as text."""
        return format_path(schema_index(self.table.schema)[field_id].path)


@dataclass(slots=True)
class FieldBuilder:
    """Numbers the fields of one table while its source is read."""

    readings: dict[int, TypeReading] = field(default_factory=dict)
    places: dict[int, FilePosition] = field(default_factory=dict)
    _ids: count[int] = field(default_factory=lambda: count(1))

    def field(
        self,
        name: str,
        reading: TypeReading,
        *,
        required: bool = False,
        doc: str | None = None,
        place: FilePosition | None = None,
    ) -> Field:
        """A field with the next id."""
        number = next(self._ids)
        if reading.type is None or reading.accepted:
            self.readings[number] = reading
        if place is not None:
            self.places[number] = place
        return Field(number, name, reading.type or UNDECIDED, required, doc)

    def table(
        self,
        name: TableName,
        columns: tuple[Field, ...],
        place: FilePosition | None = None,
        *,
        is_ordered: bool = True,
    ) -> DesiredTable:
        """The table with these columns."""
        return DesiredTable(
            Table(name, Schema(columns)),
            is_ordered=is_ordered,
            readings=self.readings,
            places=self.places,
            place=place,
        )


def is_accepted(type_: Type, reading: TypeReading | None) -> bool:
    """Whether a type that a table has already is one that a source's type may mean."""
    if reading is None:
        return False
    if isinstance(type_, Decimal):
        return "decimal" in reading.accepted
    if isinstance(type_, Fixed):
        return "fixed" in reading.accepted
    return isinstance(type_, Primitive) and type_.name in reading.accepted
