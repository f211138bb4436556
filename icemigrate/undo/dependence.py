"""Which later migrations depend on one: those that share a fact with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from icemigrate.merge import TouchedFact, shared, touched
from icemigrate.model.undo_record import UndoRecord


@dataclass(frozen=True, slots=True)
class Blocker:
    """A later migration that has to be undone first.

    :param facts: what both touch, in words; sorted.
    """

    version: str
    facts: tuple[str, ...]


def blockers(record: UndoRecord, later: Iterable[UndoRecord]) -> tuple[Blocker, ...]:
    """The migrations of ``later`` that share a fact with the one of ``record``."""
    mine = facts_of(record)
    found = []
    for other in later:
        common = shared(mine, facts_of(other))
        if common:
            names = _names(record)
            found.append(Blocker(other.version, tuple(sorted({_words(f, names, record) for f in common}))))
    return tuple(found)


def facts_of(record: UndoRecord) -> frozenset[TouchedFact]:
    """All facts that a migration touched."""
    facts: set[TouchedFact] = set()
    for undo in record.tables:
        if undo.before is not None or undo.after is not None:
            facts |= touched(undo.before, undo.after)
    return frozenset(facts)


def _names(record: UndoRecord) -> dict[str, str]:
    """Tables by the identity that stands in their facts."""
    names: dict[str, str] = {}
    for undo in record.tables:
        for table in (undo.before, undo.after):
            if table is not None:
                names[table.uuid or str(table.name)] = str(undo.declared)
    return names


def _words(fact: TouchedFact, names: dict[str, str], record: UndoRecord) -> str:
    identity, *rest = fact
    if identity not in names:
        return f"the name {rest[-1]}" if rest else identity
    if len(rest) < 2:
        return " ".join([names[identity], *rest])
    if rest[0] == "columns":
        return f"{names[identity]}.{'.'.join(_fields(rest[1:], record))}"
    return f"{names[identity]} {rest[0]} {rest[-1]}"


def _fields(parts: list[str], record: UndoRecord) -> Iterator[str]:
    """Field ids of a fact as names."""
    known: dict[str, str] = {}
    for undo in record.tables:
        for table in (undo.after, undo.before):
            if table is not None:
                known |= {str(f.id): f.name for _, f in table.schema.walk()}
    return (known.get(part, part) for part in parts)
