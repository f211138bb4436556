"""Earlier states of tables, from the undo records of migrations."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from icemigrate.history.event_log import LogEvent, unpack_log
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.drift.attribution import PastObservation
from icemigrate.planning.drift.comparable_tables import ServerManaged
from icemigrate.planning.drift.differing_facts import DifferingFact, is_expired_reference, match_earlier_state


def states_seen(
    history: History, base: Table, there: Table, facts: tuple[DifferingFact, ...], machines: ServerManaged
) -> Iterator[PastObservation]:
    """Earlier observations of facts, back to the time when each had another value.

    Facts from before the adoption of a table, and facts that no migration changed, are in the records of that
    time.

    :param base: the recorded state, under its declared name.
    :param there: the table in the catalog.
    :param machines: facts that the catalog's server and its clients set automatically.
    """
    for entry in unpack_log(history.log).entries:
        if entry.event is LogEvent.RECONCILED and str(base.name) in entry.tables:
            # Undeclared facts did not change, and neither did expired ones.
            yield PastObservation(
                entry.at, {f: False for f in facts if f.managed and not is_expired_reference(f, base)}
            )
    sought, is_recorded = set(facts), False
    for at, undo in applied_table_undos(history, base):
        is_recorded = True
        if undo.actual_after is None or not sought:
            break
        seen = PastObservation(at, match_earlier_state(sought, base, undo.actual_after, there, machines))
        yield seen
        sought -= {fact for fact, so in seen.so.items() if not so}
    if not is_recorded and history.applied:
        yield PastObservation(min(a.applied_at for a in history.applied), dict.fromkeys(facts, False))


def applied_table_undos(history: History, base: Table) -> Iterator[tuple[datetime, TableUndo]]:
    """Applied migrations of a table with their times, the last first.

    :param base: the recorded state, under its declared name.
    """
    for one in sorted(history.applied, key=lambda a: a.applied_at, reverse=True):
        record = history.undo_record(one.version) if one.state is VersionState.APPLIED else None
        for undo in () if record is None else record.tables:
            if _is_about(undo, base):
                yield one.applied_at, undo


def _is_about(undo: TableUndo, base: Table) -> bool:
    uuids = [t.uuid for t in (undo.actual_after, base) if t is not None and t.uuid is not None]
    return uuids[0] == uuids[1] if len(uuids) == 2 else undo.declared_after == base.name
