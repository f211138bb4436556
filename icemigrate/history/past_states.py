"""Earlier states of tables, from the undo records of migrations.

A history may have as many records as a project has versions, and a record as many tables as the lake.  So the
records are read in one pass for all tables of interest, and only the parts about these tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime

from icemigrate.frozen import Frozen
from icemigrate.history.event_log import LogEvent, unpack_log
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.history.undo_record_codec import TableUndoOutline
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Snapshot, Table
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.drift.attribution import PastObservation
from icemigrate.planning.drift.comparable_tables import ServerManaged
from icemigrate.planning.drift.differing_facts import DifferingFact, is_expired_reference, match_earlier_state


class FactsOfTable(Frozen):
    """The differing facts of one table.

    :param base: the recorded state, under its declared name.
    :param there: the table in the catalog.
    """

    base: Table
    there: Table
    facts: tuple[DifferingFact, ...]


@dataclass(slots=True)
class _Search:
    """The observations of one table so far.

    :ivar sought: the facts that had their current value in all observations so far.
    """

    of: FactsOfTable
    sought: set[DifferingFact]
    is_recorded: bool = False
    seen: list[PastObservation] = field(default_factory=list)


def states_seen(
    history: History, tables: Iterable[FactsOfTable], machines: ServerManaged
) -> Mapping[TableName, tuple[PastObservation, ...]]:
    """Earlier observations of the facts of tables, back to the time when each had another value.

    Facts from before the adoption of a table, and facts that no migration changed, are in the records of that
    time.

    :param machines: facts that the catalog's server and its clients set automatically.
    :returns: the observations by the declared name of the table.
    """
    searches = {one.base.name: _Search(one, set(one.facts)) for one in tables}
    by_text = {str(name): search for name, search in searches.items()}
    for entry in unpack_log(history.log).entries:
        if entry.event is LogEvent.RECONCILED:
            for text in dict.fromkeys(entry.tables):
                if (found := by_text.get(text)) is not None:
                    # Undeclared facts did not change, and neither did expired ones.
                    base, facts = found.of.base, found.of.facts
                    so = {f: False for f in facts if f.managed and not is_expired_reference(f, base)}
                    found.seen.append(PastObservation(entry.at, so))
    left = {name: search.of.base for name, search in searches.items()}
    for name, at, undo in walk_applied_undos(history, left):
        search = searches[name]
        search.is_recorded = True
        if undo.actual_after is None or not search.sought:
            del left[name]
            continue
        one = search.of
        so = match_earlier_state(search.sought, one.base, undo.actual_after, one.there, machines)
        search.seen.append(PastObservation(at, so))
        search.sought -= {fact for fact, is_same in so.items() if not is_same}
        if not search.sought:
            del left[name]
    if history.applied:
        first = min(applied.applied_at for applied in history.applied)
        for search in searches.values():
            if not search.is_recorded:
                search.seen.append(PastObservation(first, dict.fromkeys(search.of.facts, False)))
    return {name: tuple(search.seen) for name, search in searches.items()}


def last_recorded_snapshots(history: History, bases: Iterable[Table]) -> dict[TableName, Snapshot | None]:
    """The snapshots of tables when they were last recorded, by declared name.

    :param bases: the recorded states, under their declared names.
    """
    left = {base.name: base for base in bases}
    found: dict[TableName, Snapshot | None] = {}
    for name, _, undo in walk_applied_undos(history, left):
        if undo.actual_after is not None:
            found[name] = undo.actual_after.snapshot
            del left[name]
    return found


def walk_applied_undos(
    history: History, left: MutableMapping[TableName, Table]
) -> Iterator[tuple[TableName, datetime, TableUndo]]:
    """Applied migrations of tables with their times, the last first; each record is read once.

    :param left: the recorded states by their declared names.  A table that is removed gets no more, and the
        walk ends when none is left.
    """
    by_uuid = {base.uuid: name for name, base in left.items() if base.uuid is not None}
    for one in sorted(history.applied, key=lambda a: a.applied_at, reverse=True):
        if not left:
            return
        outline = history.undo_outline(one.version) if one.state is VersionState.APPLIED else None
        for part in () if outline is None else outline.tables:
            name = _table_of(part, by_uuid, left)
            if name is not None and name in left:
                yield name, one.applied_at, part.read()


def _table_of(
    part: TableUndoOutline, by_uuid: Mapping[str, TableName], left: Mapping[TableName, Table]
) -> TableName | None:
    """The table that a part of a record is about: by its uuid, where both uuids are known."""
    name, uuid = part.declared_after, part.uuids[-1]
    if uuid is not None and uuid in by_uuid:
        return by_uuid[uuid]
    base = None if name is None else left.get(name)
    return name if base is not None and None in (base.uuid, uuid) else None
