"""Violations of rules, and the context that rules read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from icemigrate.frozen import Frozen, cached_property, replace
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.schema import IndexedField, Schema, differing_fields, schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, Struct, children, is_nested


class LackingBranches(Frozen):
    """Branches of other clients whose files lack a field."""

    field_id: int
    names: tuple[str, ...]


class Violation(Frozen):
    """A condition of Iceberg or Spark that a table breaks.

    :param rule: permanent kebab-case identifier.
    :param subject: path of keys as in a migration file, e.g. ``("columns", "address.zip", "type")``.
    :param message: one sentence that names the offending word.
    :param hint: what to do about it.
    :param is_warning: whether the table works, but with a risk.
    :param branches: the branches that cause the violation; see :mod:`icemigrate.data_steps.branch_repair_sql`
        for the SQL that repairs them.
    """

    rule: str
    subject: tuple[str, ...]
    message: str
    hint: str
    is_warning: bool = False
    branches: LackingBranches | None = None


class ValidationContext(Frozen, dict=True):
    """A table for the rules.

    :param before: the table before the migration; ``None`` where it is new.
    :param written: the table when the migration writes its rows; ``None`` where it writes none.
    :param is_whole: whether to check all fields, and not only new or changed ones: earlier violations are not
        reported again.
    """

    table: Table
    before: Table | None
    written: Table | None = None
    is_whole: bool = False

    @cached_property
    def fields(self) -> Mapping[int, IndexedField]:
        """All fields by id."""
        return schema_index(self.table.schema)

    @cached_property
    def walked(self) -> tuple[tuple[FieldPath, Field], ...]:
        """The fields to check with their paths, parents first; walked once for all rules."""
        return tuple(
            (entry.path, entry.field) for _, entry in differing_fields(self.table.schema, self._known)
        )

    @cached_property
    def siblings(self) -> tuple[tuple[FieldPath, tuple[Field, ...]], ...]:
        """The siblings in the table and in every struct, list and map with a field to check."""
        nested = ((path, children(field.type)) for path, field in self.walked if is_nested(field.type))
        return (((), self.table.schema.fields), *nested)

    @property
    def _known(self) -> Schema:
        """Unchanged fields need no check, unless an older format version allows less."""
        before = self.before
        if self.is_whole or before is None or before.format_version > self.table.format_version:
            return Schema()
        return before.schema

    @property
    def differs_in_properties(self) -> bool:
        """Whether the table is as before the migration, except for properties; no rows are written."""
        before, table = self.before, self.table
        if self.is_whole or before is None or self.written is not None:
            return False
        old, new = before.schema, table.schema
        if (old.fields, old.identifier_ids) != (new.fields, new.identifier_ids):
            return False
        return table == replace(before, schema=new, properties=table.properties)

    def find(self, name: str) -> int | None:
        """The id of the field with a dotted name, as Iceberg looks names up (without quotes)."""
        if (column := self.table.schema.find((name,))) is not None:
            return column.id
        return _find(self.table.schema.fields, name)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The dotted names of all fields."""
        return tuple(".".join(entry.path) for entry in self.fields.values())

    def above(self, entry: IndexedField) -> Iterator[IndexedField]:
        """The fields that contain a field, nearest first."""
        while entry.parent is not None:
            entry = self.fields[entry.parent]
            yield entry

    def in_container(self, entry: IndexedField) -> bool:
        """Whether a list or a map contains the field, at any depth."""
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


ValidationRule: TypeAlias = Callable[[ValidationContext], Iterator[Violation]]


def column_subject(path: FieldPath, *aspect: str) -> tuple[str, ...]:
    """The subject of a column, or of one aspect of it."""
    return ("columns", format_path(path), *aspect)
