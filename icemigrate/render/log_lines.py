"""Structured log lines: one JSON document for each event.

Texts have secrets masked, and every character outside ASCII and every control character as an escape, so that
a name in the data can neither begin a line nor change what a terminal shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, Protocol, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.redaction import redact_secrets
from icemigrate.results.ingest_status_results import UnfilledColumns

_LONGEST_TEXT = 2000
_MOST_TABLES = 1000
"""Tables of a batch that have a line for each new problem."""
Value: TypeAlias = "str | int | float | None"


class LineEvent(Frozen):
    """An event that has a line.

    :param level: ``info``, ``warning`` or ``error``.
    :param name: such as ``batch``.
    """

    level: str
    name: str
    fields: dict[str, Value]


class _Table(Protocol):
    @property
    def table(self) -> str: ...
    @property
    def tenant(self) -> str | None: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def problem(self) -> str | None: ...


def log_line(event: LineEvent, time_s: float) -> str:
    """The line of an event.

    :param time_s: in seconds since 1970.
    """
    written = datetime.fromtimestamp(time_s, timezone.utc).isoformat(timespec="milliseconds")
    document: dict[str, Value] = {
        "time": written.replace("+00:00", "Z"),
        "level": event.level,
        "event": event.name,
    }
    document |= {name: _clean(value) for name, value in event.fields.items()}
    return json.dumps(document) + "\n"


def batch_events(batch: Any) -> Iterator[LineEvent]:
    """The events of a batch: itself, and each table with a new problem or without its problem.

    :param batch: a :class:`~icemigrate.pipeline.batch_result.BatchResult`.
    """
    yield LineEvent(
        "info",
        "batch",
        {
            "batch": batch.number,
            "entries": batch.entries,
            "rows": batch.rows,
            "tables": batch.table_count,
            "quarantined": batch.quarantined,
            "deferred": batch.deferred,
            "future": batch.future,
            "seconds": round(batch.seconds, 3),
        },
    )
    failed, recovered = batch.outcomes.failed, batch.outcomes.recovered
    for table in failed[:_MOST_TABLES]:
        yield LineEvent("warning", "table_failed", {**_table_fields(batch, table), "problem": table.problem})
    for table in recovered[:_MOST_TABLES]:
        yield LineEvent("info", "table_recovered", _table_fields(batch, table))
    for table in batch.outcomes.ahead[:_MOST_TABLES]:
        yield LineEvent("warning", "future_entries", {**_table_fields(batch, table), "entries": table.future})
    more = max(len(failed) - _MOST_TABLES, 0) + max(len(recovered) - _MOST_TABLES, 0)
    if more:
        yield LineEvent("warning", "more_tables", {"batch": batch.number, "tables": more})


def unfilled_event(columns: UnfilledColumns) -> LineEvent:
    """The event of the columns of a kind that nothing fills."""
    names = ", ".join(one.column for one in columns.columns)
    fields: dict[str, Value] = {"kind": columns.kind, "pattern": columns.pattern, "columns": names}
    return LineEvent("warning", "unfilled_columns", fields)


def _table_fields(batch: Any, table: _Table) -> dict[str, Value]:
    return {"batch": batch.number, "tenant": table.tenant, "kind": table.kind, "table": table.table}


def _clean(value: Value) -> Value:
    return redact_secrets(value)[:_LONGEST_TEXT] if isinstance(value, str) else value
