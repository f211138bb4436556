"""Later migrations that depend on one: those that share a fact or a name with it.

A file names tables and columns as they are called when it is applied. So a migration that renames a column
which another file names cannot change places with it: applied again, that file would find no such column, or
create a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.partitioning import UNPARTITIONED
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.merge import FootprintFact, migration_footprint, overlapping_facts


class BlockingMigration(Frozen):
    """A later migration that must be undone first.

    :param facts: shared facts, as text; sorted.
    """

    version: str
    facts: tuple[str, ...]


def find_blocking_migrations(
    record: UndoRecord, later: Iterable[UndoRecord]
) -> tuple[BlockingMigration, ...]:
    """The migrations of ``later`` that share a fact with the one of ``record``, or whose names it renamed, or
    the reverse.
    """
    mine, spoken = touched_facts(record), _spoken_of(record)
    found = []
    for other in later:
        theirs = touched_facts(other)
        common = overlapping_facts(mine, theirs) or overlapping_facts(
            mine, _spoken_of(other)
        ) | overlapping_facts(spoken, theirs)
        if common:
            names = _names(record)
            found.append(
                BlockingMigration(other.version, tuple(sorted({_words(f, names, record) for f in common})))
            )
    return tuple(found)


def touched_facts(record: UndoRecord) -> frozenset[FootprintFact]:
    """All facts that a migration touched."""
    facts: set[FootprintFact] = set()
    for undo in record.tables:
        if undo.before is not None or undo.after is not None:
            facts |= migration_footprint(undo.before, undo.after)
    return frozenset(facts)


def _spoken_of(record: UndoRecord) -> frozenset[FootprintFact]:
    """The names of the tables and columns that the migration's file speaks of, as a rename touches them."""
    facts = set(touched_facts(record))
    for undo in record.tables:
        before, after = undo.before, undo.after
        if before is not None and after is not None and before.spec.live != after.spec.live:
            # A file lists all partition fields, also those that stay.
            facts |= migration_footprint(replace(after, spec=UNPARTITIONED), after)
    return frozenset(name for fact in facts for name in _names_in(fact))


def _names_in(fact: FootprintFact) -> Iterator[FootprintFact]:
    identity, *rest = fact
    if identity == "name":
        return
    yield (identity, "name")
    if rest and rest[0] == "columns":
        chain = [part for part in rest[1:] if part.isascii() and part.isdigit()]
        yield from ((identity, "columns", *chain[:end], "name") for end in range(1, len(chain) + 1))


def _names(record: UndoRecord) -> dict[str, str]:
    """Tables by their identity in facts."""
    names: dict[str, str] = {}
    for undo in record.tables:
        for table in (undo.before, undo.after):
            if table is not None:
                names[table.uuid or str(table.name)] = str(undo.declared)
    return names


def _words(fact: FootprintFact, names: dict[str, str], record: UndoRecord) -> str:
    identity, *rest = fact
    if identity not in names:
        return f"the name {rest[-1]}" if rest else identity
    if rest == ["name"]:
        return f"the name of {names[identity]}"
    if len(rest) < 2:
        return " ".join([names[identity], *rest])
    if rest[0] == "columns" and len(rest) > 2 and rest[-1] == "name":
        return f"the name of {names[identity]}.{'.'.join(_fields(rest[1:-1], identity, record))}"
    if rest[0] == "columns":
        return f"{names[identity]}.{'.'.join(_fields(rest[1:], identity, record))}"
    return f"{names[identity]} {rest[0]} {rest[-1]}"


def _fields(parts: list[str], identity: str, record: UndoRecord) -> Iterator[str]:
    """Field ids of a fact as names; other tables of the record have other fields under the same ids."""
    known: dict[str, str] = {}
    for undo in record.tables:
        sides = [table for table in (undo.after, undo.before) if table is not None]
        if identity in {table.uuid or str(table.name) for table in sides}:
            known |= {str(f.id): f.name for table in sides for _, f in table.schema.walk()}
    return (known.get(part, part) for part in parts)
