"""Who changed which facts of tables with `icemigrate table`, from the event log.

The log keeps the newest events (:data:`~icemigrate.history.event_log.MAX_LOG_ENTRIES`); drift shows an older
manual change as one by another client.
"""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.frozen import Frozen
from icemigrate.history.event_log import LogEntry, unpack_log
from icemigrate.history.history_properties import History
from icemigrate.history.history_record import ManualFact
from icemigrate.iceberg.table import Table
from icemigrate.planning.drift.differing_facts import DifferingFact


class ManualChanges(Frozen):
    """The manual changes that the log has.

    :param entries: the newest event of each fact and value.
    """

    entries: Mapping[ManualFact, LogEntry] = {}

    def of(self, table: Table | None, fact: DifferingFact) -> LogEntry | None:
        """The event that gave a fact its current value; ``None`` where another client did.

        :param table: the table in the catalog.
        """
        if table is None or table.uuid is None:
            return None
        return self.entries.get(ManualFact(table.uuid, fact.key, fact.actual))


def manual_changes(history: History) -> ManualChanges:
    """The manual changes in a history.

    :raises HistoryError: its log is damaged.
    """
    entries = unpack_log(history.log).entries
    return ManualChanges({fact: entry for entry in entries for fact in entry.facts})
