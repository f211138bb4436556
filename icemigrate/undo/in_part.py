"""Which facts of a migration stay so that the rest can be undone (``--partial``).

What stands in the way of an undo shows itself only in its plan: a name that another column has, a column that
another client partitions by.  So facts of the migration are left as they are, one after the other, until
nothing stands in the way; as few as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from icemigrate.changes.base import Problem
from icemigrate.frozen import Frozen, replace
from icemigrate.merge import spec_key
from icemigrate.model.names import format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.undo.keeping import dropped, is_required, made_optional, narrowed
from icemigrate.undo.values import Key

_UNDER_ITS_ROWS = "the rows that it wrote stay"


class Left(Frozen):
    """A fact that stays as the migration left it.

    :param stays: what stays, in a few words.
    :param why: what stands in the way of undoing it.
    """

    key: Key
    stays: str
    why: str


class InPart(Frozen):
    """What stays because only a part is undone.

    :param rows: why the rows stay; ``None`` where they may go back.
    """

    left: tuple[Left, ...] = ()
    rows: Problem | None = None

    def notes(self) -> Iterator[str]:
        """What is said of it."""
        if self.rows is not None:
            yield f"stays: the rows that it wrote; {self.rows.message}"
        yield from (f"stays: {one.stays}; {one.why}" for one in self.left)

    def stays(self) -> Iterator[str]:
        """The same in a few words each."""
        if self.rows is not None:
            yield "the rows that it wrote"
        yield from (one.stays for one in self.left)

    def with_rows(self, before: Table, after: Table) -> InPart:
        """The same with the facts that stay with the rows: files that the migration wrote may be of the wider
        type, and may hold nulls."""
        more = (Left(key, words, _UNDER_ITS_ROWS) for key, words in _of_rows(before, after))
        return replace(self, left=(*self.left, *more))


def least_left(
    before: Table, after: Table, problems_with: Callable[[frozenset[Key]], Sequence[Problem]]
) -> tuple[Left, ...]:
    """The facts that stay; all of them where no fewer are enough.

    :param before: the migration's own difference, with ``after``.
    :param problems_with: what stands in the way of an undo that leaves these facts.
    """
    facts = dict(facts_of(before, after))
    left: dict[Key, Left] = {}
    problems = problems_with(frozenset())
    while problems:
        for key, words in _likely_first(facts, problems, left):
            now = problems_with(frozenset((*left, key)))
            solved = [p for p in problems if p not in now]
            if solved:
                left[key] = Left(key, words, solved[0].message)
                problems = now
                break
        else:
            why = problems[0].message
            rest = {key: Left(key, words, why) for key, words in facts.items() if key not in left}
            return () if problems_with(frozenset(facts)) else (*left.values(), *rest.values())
    for key in tuple(left):  # what was left first may not have been needed
        others = frozenset(left) - {key}
        if not problems_with(others):
            del left[key]
    return tuple(left.values())


def _of_rows(before: Table, after: Table) -> Iterator[tuple[Key, str]]:
    for i in narrowed(before, after):
        yield ("type", str(i)), f"the type of {_path(after, i)}"
    for i in made_optional(before, after):
        yield ("required", str(i)), f"{_path(after, i)} being optional"


def optional_with_rows_left(before: Table, after: Table) -> Iterator[Key]:
    """Dropped required fields that the migration's own files lack."""
    return (("optional", str(i)) for i in dropped(before, after) if is_required(before, i))


def facts_of(before: Table, after: Table) -> Iterator[tuple[Key, str]]:
    """The facts that a migration changed, each as a key of :mod:`icemigrate.undo.keeping` and in words."""
    old, new = index(before.schema), index(after.schema)
    for i, entry in new.items():
        if i in old and old[i].field.name != entry.field.name:
            yield ("name", str(i)), f"the name {format_path(entry.path)}"
    for i, entry in new.items():
        if i not in old and (entry.parent is None or entry.parent in old):
            yield ("stays", str(i)), format_path(entry.path)
    for i in dropped(before, after):
        yield ("column", str(i)), f"{_path(before, i)} being dropped"
    yield from _of_rows(before, after)
    if spec_key(before.spec) != spec_key(after.spec):
        yield ("spec",), "the partitioning"
    if before.sort_order.fields != after.sort_order.fields:
        yield ("order",), "the sort order"
    if before.schema.identifier_ids != after.schema.identifier_ids:
        yield ("identifier",), "the identifier"
    for key in sorted({*before.properties, *after.properties}):
        if before.properties.get(key) != after.properties.get(key):
            yield ("property", key), f"property {key}"
    for name in sorted({*before.refs, *after.refs}):
        if before.refs.get(name) != after.refs.get(name):
            yield ("reference", name), f"reference {name}"
    if before.format_version != after.format_version:
        yield ("format_version",), f"format version {after.format_version}"


def _path(table: Table, field_id: int) -> str:
    return format_path(index(table.schema)[field_id].path)


def _likely_first(
    facts: dict[Key, str], problems: Iterable[Problem], left: dict[Key, Left]
) -> list[tuple[Key, str]]:
    """The facts that are not left yet; those whose names the problems mention come first."""
    text = " ".join(f"{' '.join(map(str, p.subject))} {p.message}" for p in problems)
    rest = [(key, words) for key, words in facts.items() if key not in left]
    return sorted(rest, key=lambda fact: not any(word in text for word in fact[1].split()[-1:]))
