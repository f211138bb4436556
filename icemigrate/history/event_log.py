"""The event log: the events of all versions, in order and in few words.

A row has more (statements, tables), but reading rows takes a reader of data files. The log is one packed
property with a maximum length; entries that are removed from it are still in the rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from icemigrate.errors import HistoryError
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_record import HistoryRecord, ManualFact, RunOutcome
from icemigrate.history.recorded_versions import EPOCH, RESTORE_HINT, Intent, VersionState, check_duration_ms
from icemigrate.iceberg.json_text import (
    compress,
    decompress,
    read_values,
    write_json,
    write_without_floats,
)

MAX_LOG_ENTRIES = 300
"""The maximum number of entries. Every metadata file of the history contains them.

Packed, 300 entries usually take 18 KB, and up to 50 KB where each has a message of the maximum length.
"""
_WIDEST_MESSAGE = 2000
_WIDEST_OLD_MESSAGE = 200
_WHOLE_MESSAGES = 30
"""How many entries, the newest, keep messages of more than :data:`_WIDEST_OLD_MESSAGE` characters."""
UNRECORDED_OUTCOME = "the process ended before it recorded the outcome"


class LogEvent(str, Enum):
    """An event of a version or of the project; the outcome of a run, or ``REDONE``."""

    APPLIED = "applied"
    EXTENDED = "extended"
    """An applied version was applied to new values of its lists."""
    REDONE = "redone"
    """A rolled-back version was applied again."""
    ROLLED_BACK = "rolled_back"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    REPAIRED = "repaired"
    SQUASHED = "squashed"
    RECONCILED = "reconciled"
    BASELINED = "baselined"
    UNLOCKED = "unlocked"
    MAINTAINED = "maintained"
    RESET = "reset"
    ALTERED = "altered"

    def __str__(self) -> str:
        return self.value

    @classmethod
    def _missing_(cls, value: object) -> LogEvent | None:
        """Accept events of newer releases, so that their logs can be read."""
        if not isinstance(value, str):
            return None
        event = str.__new__(cls, value)
        event._name_, event._value_ = value, value
        return event


class LogEntry(Frozen):
    """One event.

    :param event: ``failed`` where every change was undone; ``interrupted`` where it was not.
    :param version: ``None`` for an event without a single version.
    :param at: when it ended, with time zone; for a process that died, when it began.
    :param duration_ms: 0 where it is unknown.
    :param run: as in the rows.
    :param action: the command that failed or was interrupted; empty for all other events, whose name says
        it, and for entries of older releases.
    :param tables: declared names of reconciled and altered tables, and names in the trash of tables of a
        reset; empty for all other events, whose tables are in the rows, and for entries of older releases.
    :param facts: what a manual change made different; empty for all other events.
    """

    event: LogEvent
    version: Version | None
    description: str
    at: datetime
    user: str
    host: str
    duration_ms: int = 0
    run: str = ""
    message: str | None = None
    action: str = ""
    tables: tuple[str, ...] = ()
    facts: tuple[ManualFact, ...] = ()


class EventLog(Frozen):
    """The entries, oldest first.

    :param earlier: the number of older entries, which are in the rows only.
    """

    entries: tuple[LogEntry, ...] = ()
    earlier: int = 0

    def with_entries(self, new: Sequence[LogEntry]) -> EventLog:
        """The log with more entries at its end; the oldest are removed."""
        entries = (*self.entries, *new)
        gone = max(0, len(entries) - MAX_LOG_ENTRIES)
        old = max(gone, len(entries) - _WHOLE_MESSAGES)
        shortened = (
            replace(e, message=None if e.message is None else _cut(e.message, _WIDEST_OLD_MESSAGE))
            for e in entries[gone:old]
        )
        return EventLog((*shortened, *entries[old:]), self.earlier + gone)


def _cut(text: str, widest: int) -> str:
    return text if len(text) <= widest else f"{text[: widest - 1].rstrip()}…"


def log_with_record(log: EventLog, record: HistoryRecord, begun: Intent | None) -> EventLog:
    """The log after a row is written.

    :param begun: the intent of the row's version without an outcome.
    """
    if record.outcome is RunOutcome.STARTED:
        # A process that died wrote no event; the next one that continues its migration writes it.
        return (
            log if begun is None or _is_logged(log, begun) else log.with_entries([_broken_off(begun, record)])
        )
    again = begun is not None and begun.was is not None and begun.was.state is VersionState.ROLLED_BACK
    is_redo = again and record.outcome is RunOutcome.APPLIED
    event = LogEvent.REDONE if is_redo else LogEvent(record.outcome.value)
    message = None if record.message is None else _cut(one_line_of(record.message), _WIDEST_MESSAGE)
    entry = LogEntry(
        event=event,
        version=record.version,
        description=record.description,
        at=record.finished_at or record.started_at,
        user=record.user,
        host=record.host,
        duration_ms=record.duration_ms,
        run=record.run,
        message=message,
        action=record.action if event in (LogEvent.FAILED, LogEvent.INTERRUPTED) else "",
        tables=record.tables if event in _EVENTS_WITH_TABLES else (),
        facts=record.facts,
    )
    return log.with_entries([entry])


_EVENTS_WITH_TABLES = (LogEvent.RECONCILED, LogEvent.RESET, LogEvent.ALTERED)


def unlogged_intents(log: EventLog, intents: Sequence[Intent]) -> tuple[Intent, ...]:
    """Intents without an outcome and without an entry in the log."""
    return tuple(i for i in intents if not _is_logged(log, i))


def _is_logged(log: EventLog, intent: Intent) -> bool:
    return any(e.run == intent.run and e.version == intent.version for e in log.entries)


def _broken_off(intent: Intent, record: HistoryRecord) -> LogEntry:
    return LogEntry(
        event=LogEvent.INTERRUPTED,
        version=intent.version,
        description=record.description,
        at=intent.started_at,
        user=intent.user,
        host=intent.host,
        run=intent.run,
        message=UNRECORDED_OUTCOME,
        action=intent.direction.value,
    )


def one_line_of(message: str) -> str:
    """The lines of a message as one, with a semicolon between two lines of which the first has no colon."""
    lines = [" ".join(line.split()) for line in message.splitlines() if line.strip()]
    ends = [" " if line.endswith(":") else "; " for line in lines[:-1]]
    return "".join(part for pair in zip(lines, [*ends, ""], strict=True) for part in pair)


def pack_log(log: EventLog) -> str:
    """The log as the text of a table property."""
    content: dict[str, Any] = {"earlier": log.earlier, "entries": [_to_json(e) for e in log.entries]}
    # Separate keys, so that older releases can read the entries.
    tables = {str(at): list(e.tables) for at, e in enumerate(log.entries) if e.tables}
    actions = {str(at): e.action for at, e in enumerate(log.entries) if e.action}
    facts = {
        str(at): [[f.uuid, list(f.key), f.actual] for f in e.facts]
        for at, e in enumerate(log.entries)
        if e.facts
    }
    parts = (("tables", tables), ("actions", actions), ("facts", facts))
    content |= {key: value for key, value in parts if value}
    return compress(write_json(content) if facts else write_without_floats(content))


def unpack_log(text: str) -> EventLog:
    """Read the output of :func:`pack_log`; an empty text is an empty log.

    :raises HistoryError: it is damaged.
    """
    if not text:
        return EventLog()
    try:
        stored = read_values(json.loads(decompress(text)), _StoredLog)
        if stored.earlier < 0:
            raise ValueError(f"earlier: {stored.earlier} is no number of events")
        entries = (
            replace(
                _entry(e, stored.tables.get(str(at), ()), stored.actions.get(str(at), "")),
                facts=tuple(ManualFact(*fact) for fact in stored.facts.get(str(at), ())),
            )
            for at, e in enumerate(stored.entries)
        )
        return EventLog(tuple(entries), stored.earlier)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise HistoryError(f"the history's log is damaged: {why}", RESTORE_HINT) from error


class _StoredEntry(Frozen, array_like=True):
    """An entry as :func:`_to_json` writes it; ``at`` in milliseconds since 1970."""

    event: str
    version: str | None
    description: str
    at: int
    user: str
    host: str
    duration_ms: int
    run: str
    message: str | None


class _StoredLog(Frozen):
    """A log as :func:`pack_log` writes it; tables, actions and facts by the entry's number in the list."""

    earlier: int
    entries: tuple[_StoredEntry, ...]
    tables: Mapping[str, tuple[str, ...]] = {}
    actions: Mapping[str, str] = {}
    facts: Mapping[str, tuple[tuple[str, tuple[str | int, ...], str], ...]] = {}


def _to_json(entry: LogEntry) -> list[Any]:
    version = None if entry.version is None else entry.version.text
    at = (entry.at - EPOCH) // timedelta(milliseconds=1)
    return [
        entry.event.value,
        version,
        entry.description,
        at,
        entry.user,
        entry.host,
        entry.duration_ms,
        entry.run,
        entry.message,
    ]


def _entry(stored: _StoredEntry, tables: tuple[str, ...], action: str) -> LogEntry:
    """
    :raises ValueError: a value is out of range.
    """
    check_duration_ms("duration", stored.duration_ms)
    try:
        at = EPOCH + timedelta(milliseconds=stored.at)
    except OverflowError as error:
        raise ValueError("time: the number of milliseconds is out of range") from error
    return LogEntry(
        event=LogEvent(stored.event),
        version=None if stored.version is None else Version.parse(stored.version),
        description=stored.description,
        at=at,
        user=stored.user,
        host=stored.host,
        duration_ms=max(0, stored.duration_ms),
        run=stored.run,
        message=stored.message,
        action=action,
        tables=tables,
    )
