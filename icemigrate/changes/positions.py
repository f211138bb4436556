"""Where new fields are put, and which fields are moved, so that a struct comes out in the wanted order.

As few fields as possible are moved: those outside a longest run that is in the wanted order already.
New fields go in behind the neighbours that stay, so that nothing is moved on their account.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from icemigrate.changes.base import Pair
from icemigrate.model.names import Path
from icemigrate.model.types import Field, Struct


@dataclass(frozen=True, slots=True)
class Place:
    """A place among siblings: first, behind ``after`` (a field id), or, with neither, last."""

    after: int | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Siblings:
    """The fields of one struct that is on both sides, or the columns.

    :param parent: id of the struct's field, ``None`` for the columns.
    :param path: the struct's path in the state that shall be.
    :param before: ids of the kept fields in the order they have.
    :param after: the fields in the order they shall have.
    """

    parent: int | None
    path: Path
    before: tuple[int, ...]
    after: tuple[Field, ...]

    def insertions(self, is_new: Callable[[int], bool]) -> Iterator[tuple[Field, Place]]:
        """The fields that are to be put in, in running order, each with its place at that moment.

        :param is_new: which of the fields that are not there yet are put in; the others come later.
        """
        current, there = list(self.before), frozenset(self.before)
        stays = self._staying()
        behind: int | None = None
        for field in self.after:
            if field.id not in stays:
                if field.id in there or not is_new(field.id):
                    continue
                at = 0 if behind is None else current.index(behind) + 1
                last = at == len(current)
                current.insert(at, field.id)
                yield field, Place() if last else Place(behind, first=behind is None)
            behind = field.id

    def moves(self) -> Iterator[tuple[Field, int | None]]:
        """The kept fields that move, in running order, each with the field it then stands behind.

        New fields are there when the moves run.
        """
        moving = frozenset(self.before) - self._staying()
        behind: int | None = None
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
    if [f.id for f in old] != [f.id for f in new]:
        stay = {f.id for f in new}
        yield Siblings(parent, path, tuple(f.id for f in old if f.id in stay), new)


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
