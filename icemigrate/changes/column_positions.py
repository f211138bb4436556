"""Positions of new fields, and moves of existing ones, that produce the declared order of a struct.

As few fields as possible move: those outside a longest subsequence that is already in the declared order.
New fields are inserted after fields that stay, so that they cause no moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from icemigrate.changes.change import Change, PlanProblem, TablePair, WriterImpact
from icemigrate.changes.field_changes import field_scope, lacking_siblings, map_key_problem
from icemigrate.frozen import Frozen
from icemigrate.iceberg.field_order import fields_in_order
from icemigrate.iceberg.lookup import shared_ends
from icemigrate.iceberg.names import FieldPath, format_path, quote_name
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_edits import insert_field
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, Struct

_Insertion = TypeVar("_Insertion", bound="FieldInsertion")


class ColumnPosition(Frozen):
    """A position among siblings: first, after the field with the id ``after``, or, with neither, last."""

    after: int | None = None
    first: bool = False


class SiblingFields(Frozen):
    """The fields of one struct, or the columns, without equal fields at both ends.

    :param parent: id of the struct's field, ``None`` for the columns.
    :param path: the struct's path after the migration.
    :param before: ids of the remaining fields in their order before the migration.
    :param after: the fields in their order after the migration.
    :param preceding: the field directly before these, before and after; ``None`` if they are the first.
    :param are_last: whether no field follows them.
    """

    parent: int | None
    path: FieldPath
    before: tuple[int, ...]
    after: tuple[Field, ...]
    preceding: int | None = None
    are_last: bool = True

    def insertions(self, is_new: Callable[[int], bool]) -> Iterator[tuple[Field, ColumnPosition]]:
        """The fields to insert, in running order, each with its position at that moment.

        :param is_new: which of the missing fields to insert; the others are inserted later.
        """
        current, there = list(self.before), frozenset(self.before)
        stays = self._staying()
        behind = self.preceding
        for field in self.after:
            if field.id not in stays:
                if field.id in there or not is_new(field.id):
                    continue
                at = 0 if behind is None or behind == self.preceding else current.index(behind) + 1
                last = self.are_last and at == len(current)
                current.insert(at, field.id)
                yield field, ColumnPosition() if last else ColumnPosition(behind, first=behind is None)
            behind = field.id

    def moves(self) -> Iterator[tuple[Field, int | None]]:
        """The existing fields to move, in running order, each with the field that it follows then.

        New fields are inserted before the moves run.
        """
        moving = frozenset(self.before) - self._staying()
        behind = self.preceding
        for field in self.after:
            if field.id in moving:
                yield field, behind
            behind = field.id

    def _staying(self) -> set[int]:
        rank = {field.id: i for i, field in enumerate(self.after)}
        return fields_in_order(self.before, [rank[i] for i in self.before])


def differing_siblings(pair: TablePair) -> Iterator[SiblingFields]:
    """The structs whose fields differ in number or order, the columns first."""
    if pair.both is None:
        return
    before, after = pair.both
    yield from _differing(None, (), before.schema.fields, after.schema.fields)
    for old, new in pair.altered:
        a, b = old.field.type, new.field.type
        if isinstance(a, Struct) and isinstance(b, Struct):
            yield from _differing(new.field.id, new.path, a.fields, b.fields)


def _differing(
    parent: int | None, path: FieldPath, old: tuple[Field, ...], new: tuple[Field, ...]
) -> Iterator[SiblingFields]:
    start, end = shared_ends(old, new)
    preceding = new[start - 1].id if start else None
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if [f.id for f in old] != [f.id for f in new]:
        stay = {f.id for f in new}
        yield SiblingFields(parent, path, tuple(f.id for f in old if f.id in stay), new, preceding, not end)


class FieldInsertion(Change):
    """A change that inserts a column or a field of a struct, with its nested fields.

    :param parent_id: the struct's field, ``None`` for a column.
    :param path: the field's path after the change.
    :param field: the field, with ids as in ``TablePair.after``.
    :param after: the sibling that it follows.
    :param first: whether it is the first; without both it is the last.
    """

    parent_id: int | None
    path: FieldPath
    field: Field
    after: str | None = None
    first: bool = False

    @classmethod
    def insertions(
        cls: type[_Insertion], pair: TablePair, is_new: Callable[[int], bool]
    ) -> Iterator[_Insertion]:
        """The outermost fields to insert, with their nested fields.

        :param is_new: which of the missing fields are of this kind.
        """
        if pair.both is None:
            return
        table = pair.both[0].name
        for siblings in differing_siblings(pair):
            for field, place in siblings.insertions(is_new):
                after = None if place.after is None else pair.new[place.after].field.name
                yield cls(table, siblings.parent, (*siblings.path, field.name), field, after, place.first)

    def lacks(self, table: Table) -> Iterator[str]:
        """The struct, and the sibling that the field follows."""
        if self.parent_id is not None and table.schema.by_id(self.parent_id) is None:
            yield f"field `{format_path(self.path[:-1])}` (id {self.parent_id})"
        elif not self.first:
            yield from lacking_siblings(table, self.parent_id, self.path, (self.after,))

    def scope(self) -> str:
        return field_scope(self.table, self.path)

    def inserted(self, table: Table, field: Field) -> Schema:
        """The schema with a field at the position of this one."""
        return insert_field(table.schema, self.parent_id, field, self.after, self.first)

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        """The position may be inside the key of a map."""
        return map_key_problem(before, self.table, self.parent_id, self.subject, self.path)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        """Impacts on writers that write all existing columns or fields.

        Spark 4.1 does not fill in fields of a struct, not even by name, while PyIceberg and Spark streams do.
        Trino does not cast a row to one with more fields.  Spark statements use the default of a required
        column; Spark streams do not, and fail when they start.
        """
        if self.parent_id is None:
            when = "writes values by position, or by `*` in a `MERGE`, because the table gets a new column"
        else:
            when = f"writes `{format_path(self.path[:1])}`, even by name, because it gets a new field"
        incomplete = WriterImpact(WriterKind.JOBS, f"fails if it {when}")
        if not self.field.required:
            return (incomplete,)
        missing = f"writes no value for `{format_path(self.path)}`, which this migration adds as required"
        if self.field.write_default is None:
            return (WriterImpact(WriterKind.ALL, missing),)
        return (incomplete, WriterImpact(~WriterKind.SPARK, missing))

    @property
    def is_missing_in_rows(self) -> bool:
        """Whether existing rows have no value for it: it is required and has no initial default."""
        return self.field.required and self.field.initial_default is None

    @property
    def position_text(self) -> str:
        """The position in words, as the end of a description; empty for the last position."""
        return (
            ", first" if self.first else f", after {quote_name(self.after)}" if self.after is not None else ""
        )
