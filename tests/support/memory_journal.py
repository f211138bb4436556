"""A journal whose history is kept in memory: for tests of what comes to tables."""

from __future__ import annotations

from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from tests.support.recording_engine import RecordingEngine

HISTORY = TableName(("icemigrate",), "history")


def journal_in_memory(engine: RecordingEngine | None = None, project: str = "market") -> Journal:
    """A journal of its own; nobody waits for anybody."""
    return Journal(HistoryWriter(engine or RecordingEngine(), HISTORY, project), timeout_s=0)
