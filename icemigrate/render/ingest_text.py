"""Texts of ``ingest``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.terminal_style import PLAIN_STYLE, TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.ingest_results import IngestedTable, IngestResult
from icemigrate.results.ingest_status_results import UnfilledColumns

SHOWN_PROBLEMS = 20


class _Table(Protocol):
    @property
    def tenant(self) -> str | None: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def problem(self) -> str | None: ...
    @property
    def future(self) -> int: ...


class _Outcomes(Protocol):
    @property
    def failed(self) -> Sequence[_Table]: ...
    @property
    def recovered(self) -> Sequence[_Table]: ...
    @property
    def ahead(self) -> Sequence[_Table]: ...


class _Batch(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def deferred(self) -> int: ...
    @property
    def entries(self) -> int: ...
    @property
    def table_count(self) -> int: ...
    @property
    def outcomes(self) -> _Outcomes: ...


def batch_text(batch: _Batch, *, shows_problems: bool = True) -> str:
    """A line for each batch, each table with a new problem, and each table without its problem.

    :param shows_problems: whether it has the new problems.
    """
    deferred = f", {format_count(batch.deferred, 'stays', 'stay')} in the log" if batch.deferred else ""
    tables = format_count(batch.table_count, "tenant and kind", "tenants and kinds")
    entries = format_count(batch.entries, "entry", "entries")
    lines = [f"batch {batch.number}: {entries} of {tables}{deferred}"]
    failed, recovered = batch.outcomes.failed if shows_problems else (), batch.outcomes.recovered
    lines += [problem_line(one.tenant, one.kind, one.problem, PLAIN_STYLE) for one in failed[:SHOWN_PROBLEMS]]
    if len(failed) > SHOWN_PROBLEMS:
        lines.append(f"and {len(failed) - SHOWN_PROBLEMS:,} more with a problem")
    lines += [
        f"recovered {display.one_line(f'{one.tenant}, {one.kind}')}" for one in recovered[:SHOWN_PROBLEMS]
    ]
    if len(recovered) > SHOWN_PROBLEMS:
        lines.append(f"and {len(recovered) - SHOWN_PROBLEMS:,} more without a problem")
    lines += [
        f"warning   {display.one_line(f'{one.tenant}, {one.kind}')}: "
        f"{format_count(one.future, 'entry is', 'entries are')} from the future"
        for one in batch.outcomes.ahead[:SHOWN_PROBLEMS]
    ]
    return "\n".join(lines) + "\n"


def _places(done: Sequence[IngestedTable]) -> str:
    """The tables, and the tenants and kinds whose rows are in loose files alone."""
    loose = sum(not table.table for table in done)
    files = f"Parquet files of {format_count(loose, 'tenant and kind', 'tenants and kinds')}"
    tables = format_count(len(done) - loose, "table", "tables")
    if not loose:
        return tables
    return files if loose == len(done) else f"{tables}, and {files}"


def problem_line(tenant: str | None, kind: str | None, problem: str | None, style: TerminalStyle) -> str:
    """Why entries of a tenant and kind stay in the log."""
    whose = display.one_line(f"{tenant}, {kind}")
    return f"{style.bad('deferred')}  {whose}: {display.one_line(problem or '')}"


def unfilled_text(one: UnfilledColumns, style: TerminalStyle) -> str:
    """A line about the columns of a kind that nothing fills."""
    names = [f"`{display.one_line(column.column)}`{_near(column.did_you_mean)}" for column in one.columns]
    shown = ", ".join(names[:SHOWN_PROBLEMS])
    more = f" and {len(names) - SHOWN_PROBLEMS:,} more" if len(names) > SHOWN_PROBLEMS else ""
    what = "columns" if len(names) > 1 else "column"
    return f"{style.changed('warning')}   {one.kind}: nothing fills {what} {shown}{more} of `{one.pattern}`"


def _near(name: str | None) -> str:
    return "" if name is None else f" (did you mean `{name}`?)"


def _stopped_text(result: IngestResult) -> str:
    """What waits in the log after a run that was stopped, beside the entries of tables with a problem."""
    if not result.waiting and not result.uncounted_segments:
        return "Stopped: no other entry waits in sealed segments of the log."
    waiting = format_count(result.waiting, "other entry waits", "other entries wait")
    more = ""
    if result.uncounted_segments:
        more = f", and {format_count(result.uncounted_segments, 'segment')} with entries that are not counted"
    return f"Stopped: {waiting} in the log{more}. Run the command again to drain the log."


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
    lines.append(f"Ingested {written} into {_places(done)}{deferred}.")
    if result.created_tables:
        lines.append(f"Created {format_count(result.created_tables, 'table')} for new tenants.")
    if result.stopped:
        lines.append(_stopped_text(result))
    if result.removed_segments:
        segments = format_count(result.removed_segments, "drained segment", "drained segments")
        lines.append(f"Removed {segments} from the log.")
    return "\n".join(lines) + "\n"
