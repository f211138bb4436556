"""Where new fields are put, and which fields are moved, so that a struct comes out in the wanted order.

As few fields as possible are moved: those outside a longest run that is in the wanted order already.
New fields go in behind the neighbours that stay, so that nothing is moved on their account.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from icemigrate.changes.base import Change, Harm, Pair, Problem
from icemigrate.changes.fields import field_scope, map_key_problem
from icemigrate.frozen import Frozen
from icemigrate.model.lookup import shared_ends
from icemigrate.model.names import Path, format_path
from icemigrate.model.schema import Schema
from icemigrate.model.schema_edits import insert_field
from icemigrate.model.table import Table
from icemigrate.model.types import Field, Struct
from icemigrate.model.writers import Whom

_Insertion = TypeVar("_Insertion", bound="FieldInsertion")


class Place(Frozen):
    """A place among siblings: first, behind ``after`` (a field id), or, with neither, last."""

    after: int | None = None
    first: bool = False


class Siblings(Frozen):
    """The fields of one struct that is on both sides, or the columns, without those at both ends that stay.

    :param parent: id of the struct's field, ``None`` for the columns.
    :param path: the struct's path in the state that shall be.
    :param before: ids of the kept fields in the order they have.
    :param after: the fields in the order they shall have.
    :param preceding: the field right before these on both sides, ``None`` where they are the first.
    :param are_last: whether no field follows them.
    """

    parent: int | None
    path: Path
    before: tuple[int, ...]
    after: tuple[Field, ...]
    preceding: int | None = None
    are_last: bool = True

    def insertions(self, is_new: Callable[[int], bool]) -> Iterator[tuple[Field, Place]]:
        """The fields that are to be put in, in running order, each with its place at that moment.

        :param is_new: which of the fields that are not there yet are put in; the others come later.
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
                yield field, Place() if last else Place(behind, first=behind is None)
            behind = field.id

    def moves(self) -> Iterator[tuple[Field, int | None]]:
        """The kept fields that move, in running order, each with the field it then stands behind.

        New fields are there when the moves run.
        """
        moving = frozenset(self.before) - self._staying()
        behind = self.preceding
        for field in self.after:
            if field.id in moving:
                yield field, behind
            behind = field.id

    def _staying(self) -> set[int]:
        rank = {field.id: i for i, field in enumerate(self.after)}
        return longest_rising(self.before, [rank[i] for i in self.before])


def all_siblings(pair: Pair) -> Iterator[Siblings]:
    """The structs of both sides whose fields differ in number or order, the columns first."""
    if pair.both is None:
        return
    before, after = pair.both
    yield from _differing(None, (), before.schema.fields, after.schema.fields)
    for old, new in pair.altered:
        a, b = old.field.type, new.field.type
        if isinstance(a, Struct) and isinstance(b, Struct):
            yield from _differing(new.field.id, new.path, a.fields, b.fields)


def _differing(
    parent: int | None, path: Path, old: tuple[Field, ...], new: tuple[Field, ...]
) -> Iterator[Siblings]:
    start, end = shared_ends(old, new)
    preceding = new[start - 1].id if start else None
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if [f.id for f in old] != [f.id for f in new]:
        stay = {f.id for f in new}
        yield Siblings(parent, path, tuple(f.id for f in old if f.id in stay), new, preceding, not end)


class FieldInsertion(Change):
    """A change that puts a field into a struct or among the columns, with all that is below it.

    :param parent_id: the struct's field, ``None`` for a column.
    :param path: the field's path when it is there.
    :param field: the field, under the ids that it is found by.
    :param after: the sibling it is put behind.
    :param first: whether it is put first; with neither it comes last.
    """

    parent_id: int | None
    path: Path
    field: Field
    after: str | None = None
    first: bool = False

    @classmethod
    def insertions(cls: type[_Insertion], pair: Pair, is_new: Callable[[int], bool]) -> Iterator[_Insertion]:
        """The top-most fields that are to be put in: what is below one comes with it.

        :param is_new: which of the fields that are not there yet are of this kind.
        """
        if pair.both is None:
            return
        table = pair.both[0].name
        for siblings in all_siblings(pair):
            for field, place in siblings.insertions(is_new):
                after = None if place.after is None else pair.new[place.after].field.name
                yield cls(table, siblings.parent, (*siblings.path, field.name), field, after, place.first)

    def scope(self) -> str:
        """The field, below its table."""
        return field_scope(self.table, self.path)

    def inserted(self, table: Table, field: Field) -> Schema:
        """The schema with a field at the place of this one."""
        return insert_field(table.schema, self.parent_id, field, self.after, self.first)

    def problems(self, before: Table) -> Iterator[Problem]:
        """The place may be below the key of a map."""
        return map_key_problem(before, self.table, self.parent_id, self.subject, self.path)

    def harms(self) -> tuple[Harm, ...]:
        """What it does to those who give values to all that was there.

        Spark 4.1 fills in no field of a struct, by name neither, while PyIceberg and a stream of Spark do.
        Trino casts no row to one of more fields.  The default of a required column is taken by statements of
        Spark, and by none of its streams, as they find out when they start.
        """
        if self.parent_id is None:
            where = "gives values by position, or by `*` in a `MERGE`: there are further columns then"
        else:
            where = f"gives `{format_path(self.path[:1])}`, by name too: there are further fields in it then"
        one_more = Harm(Whom.JOBS, f"fails if it {where}")
        if not self.field.required:
            return (one_more,)
        missed = f"gives no value for `{format_path(self.path)}`, which is required then"
        if self.field.write_default is None:
            return (Harm(Whom.ALL, missed),)
        return (one_more, Harm(~Whom.SPARK, missed))

    @property
    def is_missed(self) -> bool:
        """Whether rows without it break the table's word: it is required, and nothing stands in for it."""
        return self.field.required and self.field.initial_default is None

    @property
    def place_text(self) -> str:
        """The place in words, as the end of a description; empty for the last one."""
        return ", first" if self.first else f", after {self.after}" if self.after is not None else ""


def longest_rising(ids: Sequence[int], ranks: Sequence[int]) -> set[int]:
    """The ids of a longest subsequence whose ranks rise (patience sorting, n log n)."""
    tops: list[int] = []
    tails: list[int] = []
    previous: list[int] = []
    for i, rank in enumerate(ranks):
        at = bisect_left(tops, rank)
        previous.append(tails[at - 1] if at else -1)
        if at == len(tops):
            tops.append(rank)
            tails.append(i)
        else:
            tops[at] = rank
            tails[at] = i
    out: set[int] = set()
    i = tails[-1] if tails else -1
    while i >= 0:
        out.add(ids[i])
        i = previous[i]
    return out
