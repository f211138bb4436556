"""The facts of a migration that stay so that the rest can be undone (``--partial``).

Obstacles of an undo appear only in its plan: a name that another column has, a column that another client
partitions by.  So facts of the migration are left as they are, one after the other, until no obstacle
remains; as few as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from icemigrate.changes.change import PlanProblem
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.planning.undo.retained_facts import (
    dropped_fields,
    fields_made_optional,
    fields_with_changed_type,
    is_required_in_files,
)
from icemigrate.planning.undo.undo_inputs import FactKey, moved_references

_UNDER_ITS_ROWS = "the rows that it wrote stay"


class RemainingFact(Frozen):
    """A fact that stays as the migration left it.

    :param stays: the fact, as a phrase.
    :param why: the obstacle.
    """

    key: FactKey
    stays: str
    why: str


class PartialUndo(Frozen):
    """The facts that stay because of ``--partial``.

    :param rows: why the rows stay; ``None`` where they may be restored.
    """

    left: tuple[RemainingFact, ...] = ()
    rows: PlanProblem | None = None

    def notes(self) -> Iterator[str]:
        """Notes about the facts that stay."""
        if self.rows is not None:
            yield f"stays: the rows that it wrote; {self.rows.message}"
        yield from (f"stays: {one.stays}; {one.why}" for one in self.left)

    def stays(self) -> Iterator[str]:
        """The same in a few words each."""
        if self.rows is not None:
            yield "the rows that it wrote"
        yield from (one.stays for one in self.left)

    def with_rows(self, before: Table, after: Table) -> PartialUndo:
        """The same, with the facts that stay together with the rows.

        Files that the migration wrote may have the wider type, and may contain nulls.
        """
        more = (RemainingFact(key, words, _UNDER_ITS_ROWS) for key, words in _of_rows(before, after))
        return replace(self, left=(*self.left, *more))


def minimal_remaining_facts(
    before: Table, after: Table, problems_with: Callable[[frozenset[FactKey]], Sequence[PlanProblem]]
) -> tuple[RemainingFact, ...]:
    """The facts that stay; all of them where no fewer are enough.

    :param before: the migration's own difference, with ``after``.
    :param problems_with: the obstacles of an undo that leaves these facts.
    """
    facts = dict(changed_fact_keys(before, after))
    left: dict[FactKey, RemainingFact] = {}
    problems = problems_with(frozenset())
    while problems:
        for key, words in _likely_first(facts, problems, left):
            now = problems_with(frozenset((*left, key)))
            solved = [p for p in problems if p not in now]
            if solved:
                left[key] = RemainingFact(key, words, solved[0].message)
                problems = now
                break
        else:
            why = problems[0].message
            rest = {key: RemainingFact(key, words, why) for key, words in facts.items() if key not in left}
            return () if problems_with(frozenset(facts)) else (*left.values(), *rest.values())
    for key in tuple(left):  # facts that were left first may not have been needed
        others = frozenset(left) - {key}
        if not problems_with(others):
            del left[key]
    return tuple(left.values())


def _of_rows(before: Table, after: Table) -> Iterator[tuple[FactKey, str]]:
    for i in fields_with_changed_type(before, after):
        yield ("type", str(i)), f"the type of {_path(after, i)}"
    for i in fields_made_optional(before, after):
        yield ("required", str(i)), f"{_path(after, i)} being optional"


def fields_optional_with_rows(before: Table, after: Table) -> Iterator[FactKey]:
    """Dropped required fields that the migration's own files lack."""
    return (("optional", str(i)) for i in dropped_fields(before, after) if is_required_in_files(before, i))


def changed_fact_keys(before: Table, after: Table) -> Iterator[tuple[FactKey, str]]:
    """The facts that a migration changed, each as a key of :mod:`icemigrate.planning.undo.retained_facts` and
    in words."""
    old, new = schema_index(before.schema), schema_index(after.schema)
    for i, entry in new.items():
        if i in old and old[i].field.name != entry.field.name:
            yield ("name", str(i)), f"the name {format_path(entry.path)}"
    for i, entry in new.items():
        if i not in old and (entry.parent is None or entry.parent in old):
            yield ("stays", str(i)), format_path(entry.path)
    for i in dropped_fields(before, after):
        yield ("column", str(i)), f"{_path(before, i)} being dropped"
    yield from _of_rows(before, after)
    if before.spec.definitions != after.spec.definitions:
        yield ("spec",), "the partitioning"
    if before.sort_order.fields != after.sort_order.fields:
        yield ("order",), "the sort order"
    if before.schema.identifier_ids != after.schema.identifier_ids:
        yield ("identifier",), "the identifier"
    for key in sorted({*before.properties, *after.properties}):
        if before.properties.get(key) != after.properties.get(key):
            yield ("property", key), f"property {key}"
    moved = moved_references(before, after)
    for name in sorted({*before.refs, *after.refs}):
        if before.refs.get(name) != after.refs.get(name) or name in moved:
            yield ("reference", name), f"reference {name}"
    if before.format_version != after.format_version:
        yield ("format_version",), f"format version {after.format_version}"


def _path(table: Table, field_id: int) -> str:
    return format_path(schema_index(table.schema)[field_id].path)


def _likely_first(
    facts: dict[FactKey, str], problems: Iterable[PlanProblem], left: dict[FactKey, RemainingFact]
) -> list[tuple[FactKey, str]]:
    """The remaining candidates; those whose names the problems mention come first."""
    text = " ".join(f"{' '.join(map(str, p.subject))} {p.message}" for p in problems)
    rest = [(key, words) for key, words in facts.items() if key not in left]
    return sorted(rest, key=lambda fact: not any(word in text for word in fact[1].split()[-1:]))
