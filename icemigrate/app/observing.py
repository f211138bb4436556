"""What the history saw of a table, and when: the record of a migration holds the table as it left it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from icemigrate.drift.facts import Fact, is_expired, was_so
from icemigrate.drift.reading import Seen
from icemigrate.drift.values import Machines
from icemigrate.history.log import unpack
from icemigrate.history.properties import History
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo


def observed(
    history: History, base: Table, there: Table, facts: tuple[Fact, ...], machines: Machines
) -> Iterator[Seen]:
    """What is known of facts at earlier times, back to when each of them was not so yet.

    What was there before a table was taken in, or was left alone by migrations since, is so in the records
    of that time already.

    :param base: as recorded, under its declared name.
    :param there: the table in the catalog.
    :param machines: what the catalog's server and its clients set by themselves.
    """
    for entry in unpack(history.log).entries:
        if entry.event == "reconciled" and str(base.name) in entry.tables:
            # What no file ever declared stayed as it was, and so did what had expired.
            yield Seen(entry.at, {f: False for f in facts if f.managed and not is_expired(f, base)})
    sought, is_recorded = set(facts), False
    for at, undo in records(history, base):
        is_recorded = True
        if undo.actual_after is None or not sought:
            break
        seen = Seen(at, was_so(sought, base, undo.actual_after, there, machines))
        yield seen
        sought -= {fact for fact, so in seen.so.items() if not so}
    if not is_recorded and history.applied:
        yield Seen(min(a.applied_at for a in history.applied), dict.fromkeys(facts, False))


def records(history: History, base: Table) -> Iterator[tuple[datetime, TableUndo]]:
    """When migrations that are applied left a table as they did, the last first.

    :param base: as recorded, under its declared name.
    """
    for one in sorted(history.applied, key=lambda a: a.applied_at, reverse=True):
        record = history.undo_record(one.version) if one.standing == "applied" else None
        for undo in () if record is None else record.tables:
            if _is_about(undo, base):
                yield one.applied_at, undo


def _is_about(undo: TableUndo, base: Table) -> bool:
    uuids = [t.uuid for t in (undo.actual_after, base) if t is not None and t.uuid is not None]
    return uuids[0] == uuids[1] if len(uuids) == 2 else undo.declared_after == base.name
