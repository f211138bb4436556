"""The log: what happened to the versions, in order and in few words.

A row says more (statements, tables), but reading rows takes a reader of data files.  The log is one property,
packed, and bounded: what falls out of it stands in the rows still.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypeAlias

from icemigrate.declare.version import Version
from icemigrate.errors import HistoryError
from icemigrate.frozen import Frozen
from icemigrate.history.intent import Intent
from icemigrate.history.record import Record

KEPT = 300
"""How many entries the log keeps.

They stand in every metadata file of the history.  Packed, 300 take 18 KB as they usually are, and up to 50 KB
where every one has a message as long as messages may be.
"""
_WIDEST_MESSAGE = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

Event: TypeAlias = Literal[
    "applied",
    "redone",
    "rolled_back",
    "failed",
    "interrupted",
    "repaired",
    "squashed",
    "reconciled",
    "baselined",
    "unlocked",
    "maintained",
]


class Entry(Frozen):
    """One thing that happened.

    :param event: ``failed`` where all that was done was undone again; ``interrupted`` where it was not.
    :param version: ``None`` where it is about no single one.
    :param at: when it ended, with time zone; of a process that died, when it began.
    :param duration_ms: 0 where nobody knows.
    :param run: as in the rows.
    :param tables: which tables were led back, by their declared names; empty for all other events, whose
        tables stand in the rows, and where an older icemigrate wrote it.
    """

    event: Event
    version: Version | None
    description: str
    at: datetime
    user: str
    host: str
    duration_ms: int = 0
    run: str = ""
    message: str | None = None
    tables: tuple[str, ...] = ()


class Log(Frozen):
    """What happened, the first first.

    :param earlier: how many entries came before these, and stand in the rows alone.
    """

    entries: tuple[Entry, ...] = ()
    earlier: int = 0

    def with_entries(self, new: Sequence[Entry]) -> Log:
        """The log with more at its end; the oldest make way."""
        entries = (*self.entries, *new)
        gone = max(0, len(entries) - KEPT)
        return Log(entries[gone:], self.earlier + gone)


def logged(log: Log, record: Record, begun: Intent | None) -> Log:
    """The log once a row is written.

    :param begun: what the history says was begun of the row's version and has no outcome yet.
    """
    if record.outcome == "started":
        # A process that died said nothing; the next one that takes its migration up says it for it.
        return (
            log if begun is None or _is_told(log, begun) else log.with_entries([_broken_off(begun, record)])
        )
    again = begun is not None and begun.was is not None and begun.was.standing == "held"
    event: Event = "redone" if record.outcome == "applied" and again else record.outcome
    message = None if record.message is None else " ".join(record.message.split())[:_WIDEST_MESSAGE]
    entry = Entry(
        event=event,
        version=record.version,
        description=record.description,
        at=record.finished_at or record.started_at,
        user=record.user,
        host=record.host,
        duration_ms=record.duration_ms,
        run=record.run,
        message=message,
        tables=record.tables if event == "reconciled" else (),
    )
    return log.with_entries([entry])


def broken_off(log: Log, intents: Sequence[Intent]) -> tuple[Intent, ...]:
    """What was begun, has no outcome, and is not told of in the log."""
    return tuple(i for i in intents if not _is_told(log, i))


def _is_told(log: Log, intent: Intent) -> bool:
    return any(e.run == intent.run and e.version == intent.version for e in log.entries)


def _broken_off(intent: Intent, record: Record) -> Entry:
    what = f"{intent.direction.value} was broken off"
    return Entry(
        event="interrupted",
        version=intent.version,
        description=record.description,
        at=intent.started_at,
        user=intent.user,
        host=intent.host,
        run=intent.run,
        message=what,
    )


def pack(log: Log) -> str:
    """The log as the text of a table property."""
    content: dict[str, Any] = {"earlier": log.earlier, "entries": [_to_json(e) for e in log.entries]}
    # Beside the entries, so that an icemigrate that knows nothing of it can read them.
    tables = {str(at): list(e.tables) for at, e in enumerate(log.entries) if e.tables}
    if tables:
        content["tables"] = tables
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack(text: str) -> Log:
    """Read what :func:`pack` wrote; nothing is an empty log.

    :raises HistoryError: it is damaged.
    """
    if not text:
        return Log()
    try:
        content = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
        tables = content.get("tables", {})
        entries = (_from_json(e, tuple(tables.get(str(at), ()))) for at, e in enumerate(content["entries"]))
        return Log(tuple(entries), content["earlier"])
    except (ValueError, KeyError, TypeError, zlib.error, binascii.Error) as error:
        raise HistoryError(f"the history's log is damaged: {error}") from error


def _to_json(entry: Entry) -> list[Any]:
    version = None if entry.version is None else entry.version.text
    at = (entry.at - _EPOCH) // timedelta(milliseconds=1)
    return [
        entry.event,
        version,
        entry.description,
        at,
        entry.user,
        entry.host,
        entry.duration_ms,
        entry.run,
        entry.message,
    ]


def _from_json(values: list[Any], tables: tuple[str, ...]) -> Entry:
    event, version, description, at, user, host, duration_ms, run, message = values
    return Entry(
        event=event,
        version=None if version is None else Version.parse(version),
        description=description,
        at=_EPOCH + timedelta(milliseconds=at),
        user=user,
        host=host,
        duration_ms=duration_ms,
        run=run,
        message=message,
        tables=tables,
    )
