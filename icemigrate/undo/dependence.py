"""Which later migrations depend on one: those that share a fact with it, or a name.

A file speaks of tables and columns by the names that they have when it is applied.  So who renames one that
another file speaks of cannot change places with it: applied again, that file would find no such column, or
make a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.frozen import Frozen, replace
from icemigrate.merge import TouchedFact, shared, touched
from icemigrate.model.partitioning import UNPARTITIONED
from icemigrate.model.undo_record import UndoRecord


class Blocker(Frozen):
    """A later migration that has to be undone first.

    :param facts: what both touch, in words; sorted.
    """

    version: str
    facts: tuple[str, ...]


def blockers(record: UndoRecord, later: Iterable[UndoRecord]) -> tuple[Blocker, ...]:
    """The migrations of ``later`` that share a fact with the one of ``record``, or rename what it speaks of,
    or speak of what it renamed."""
    mine, spoken = facts_of(record), _spoken_of(record)
    found = []
    for other in later:
        theirs = facts_of(other)
        common = shared(mine, theirs) or shared(mine, _spoken_of(other)) | shared(spoken, theirs)
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


def _spoken_of(record: UndoRecord) -> frozenset[TouchedFact]:
    """The names of the tables and columns that the migration's file speaks of, as a rename touches them."""
    facts = set(facts_of(record))
    for undo in record.tables:
        before, after = undo.before, undo.after
        if before is not None and after is not None and before.spec.live != after.spec.live:
            # A file lists all partition fields, those that stay as well.
            facts |= touched(replace(after, spec=UNPARTITIONED), after)
    return frozenset(name for fact in facts for name in _names_in(fact))


def _names_in(fact: TouchedFact) -> Iterator[TouchedFact]:
    identity, *rest = fact
    if identity == "name":
        return
    yield (identity, "name")
    if rest and rest[0] == "columns":
        chain = [part for part in rest[1:] if part.isdigit()]
        yield from ((identity, "columns", *chain[:end], "name") for end in range(1, len(chain) + 1))


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
    if rest == ["name"]:
        return f"the name of {names[identity]}"
    if len(rest) < 2:
        return " ".join([names[identity], *rest])
    if rest[0] == "columns" and len(rest) > 2 and rest[-1] == "name":
        return f"the name of {names[identity]}.{'.'.join(_fields(rest[1:-1], record))}"
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
