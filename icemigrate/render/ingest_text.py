"""Texts of ``ingest``."""

from __future__ import annotations

from typing import Protocol

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.ingest_results import IngestResult

SHOWN_PROBLEMS = 20


class _Batch(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def deferred(self) -> int: ...
    @property
    def entries(self) -> int: ...
    @property
    def table_count(self) -> int: ...


def batch_text(batch: _Batch) -> str:
    """One line after each batch."""
    deferred = f", {format_count(batch.deferred, 'stays', 'stay')} in the log" if batch.deferred else ""
    tables = format_count(batch.table_count, "table", "tables")
    return f"batch {batch.number}: {format_count(batch.entries, 'entry', 'entries')} in {tables}{deferred}\n"


def problem_line(tenant: str | None, kind: str | None, problem: str | None, style: TerminalStyle) -> str:
    """Why entries of a tenant and kind stay in the log."""
    whose = display.one_line(f"{tenant}, {kind}")
    return f"{style.bad('deferred')}  {whose}: {display.one_line(problem or '')}"


def ingest_text(result: IngestResult, style: TerminalStyle) -> str:
    """The totals, and what stays in the log."""
    quarantined = [table for table in result.tables if table.tenant is None and table.entries]
    done = [table for table in result.tables if table.tenant is not None and table.entries]
    lines = []
    failed = [table for table in result.tables if table.problem is not None]
    lines += [problem_line(t.tenant, t.kind, t.problem, style) for t in failed[:SHOWN_PROBLEMS]]
    if len(failed) > SHOWN_PROBLEMS:
        lines.append(f"and {len(failed) - SHOWN_PROBLEMS} more")
    if quarantined:
        rows_of = [(display.one_line(t.table), f"{t.entries:,}", f"{t.rows:,}") for t in quarantined]
        lines += text_columns(rows_of, ("quarantine", "entries", "rows"), style)
    entries, rows = sum(t.entries for t in done), sum(t.rows for t in done)
    if lines:
        lines.append("")
    written = f"{format_count(entries, 'entry', 'entries')} as {format_count(rows, 'row', 'rows')}"
    deferred = ""
    if result.deferred:
        stay = format_count(result.deferred, "stays", "stay")
        deferred = f"; {stay} in the log, and the next run tries them again"
    lines.append(f"Ingested {written} into {format_count(len(done), 'table', 'tables')}{deferred}.")
    if result.removed_segments:
        segments = format_count(result.removed_segments, "drained segment", "drained segments")
        lines.append(f"Removed {segments} from the log.")
    return "\n".join(lines) + "\n"
