"""Texts of ``ingest status``."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import format_count, format_size
from icemigrate.render import display
from icemigrate.render.ingest_text import SHOWN_PROBLEMS, problem_line, unfilled_text
from icemigrate.render.table_cells import number_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.ingest_status_results import IngestStatus, TenantIngestStatus, UnreadCollectorFile

_MOST_LINES = 40
"""Tenants and kinds that are all shown; of more, only those that wait or have a problem."""
_HEADS = ("tenant", "kind", "waiting", "oldest", "ingested", "rate", "quarantined")


def ingest_status_text(status: IngestStatus, style: TerminalStyle) -> str:
    """What waits and what is ingested by tenant and kind, the problems, and the totals."""
    shown = status.tenants
    if len(shown) > _MOST_LINES:
        shown = tuple(one for one in shown if one.waiting or one.problem is not None)[:_MOST_LINES]
    lines = text_columns([_row(one) for one in shown], _HEADS, style)
    if len(shown) < len(status.tenants):
        lines.append(f"and {len(status.tenants) - len(shown):,} more, which `--format json` lists")
    failed = [one for one in status.tenants if one.problem is not None]
    lines += [_problem(one, style) for one in failed[:SHOWN_PROBLEMS]]
    if len(failed) > SHOWN_PROBLEMS:
        lines.append(f"and {len(failed) - SHOWN_PROBLEMS:,} more with a problem")
    lines += [_unread(one) for one in status.unread_files[:SHOWN_PROBLEMS]]
    if len(status.unread_files) > SHOWN_PROBLEMS:
        lines.append(f"and {len(status.unread_files) - SHOWN_PROBLEMS:,} more files with unread requests")
    lines += list(_kafka(status))
    lines += [unfilled_text(one, style) for one in status.unfilled_columns]
    if lines:
        lines.append("")
    lines.append(_totals(status))
    return "\n".join(lines) + "\n"


def _row(one: TenantIngestStatus) -> tuple[str, ...]:
    return (
        "-" if one.tenant is None else display.one_line(one.tenant),
        one.kind or "-",
        number_text(one.waiting),
        _age(one.oldest_age_s),
        number_text(one.ingested),
        f"{_rate(one.entries_per_s)}/s" if one.entries_per_s else "-",
        number_text(one.quarantined),
    )


def _problem(one: TenantIngestStatus, style: TerminalStyle) -> str:
    failures = format_count(one.failures, "batch", "batches")
    age = f" ({failures}, for {_age(one.problem_age_s)})" if one.problem_age_s is not None else ""
    return f"{problem_line(one.tenant, one.kind, one.problem, style)}{age}"


def _kafka(status: IngestStatus) -> Iterator[str]:
    """A line for each partition with records that wait, or with its offset where that is not known."""
    shown = [one for one in status.kafka if one.waiting != 0]
    for one in shown[:SHOWN_PROBLEMS]:
        tenant = "" if one.tenant is None else f" of {display.one_line(one.tenant)}"
        if one.waiting is None:
            what = f"drained up to offset {one.next_offset}"
        else:
            records = format_count(one.waiting, "record waits", "records wait")
            what = (
                records
                if one.oldest_age_s is None
                else f"{records}, the oldest one for {_age(one.oldest_age_s)}"
            )
        yield f"kafka     {display.one_line(one.topic)}-{one.partition}{tenant}: {what}"
    if len(shown) > SHOWN_PROBLEMS:
        yield f"and {len(shown) - SHOWN_PROBLEMS:,} more partitions, which `--format json` lists"
    if status.kafka_problem is not None:
        yield f"kafka     {display.one_line(status.kafka_problem)}"


def _unread(one: UnreadCollectorFile) -> str:
    tenant = "" if one.tenant is None else f" of {display.one_line(one.tenant)}"
    path, size, age = display.one_line(one.path), format_size(one.unread_bytes), _age(one.written_age_s)
    return f"unread    {path}{tenant}: {size}, written {age} ago"


def _totals(status: IngestStatus) -> str:
    waiting = format_count(status.waiting, "entry waits", "entries wait")
    oldest = f", the oldest one for {_age(status.oldest_age_s)}" if status.oldest_age_s is not None else ""
    quarantined = f", {status.quarantined:,} quarantined" if status.quarantined else ""
    batches = format_count(status.batches, "batch", "batches")
    rate = f", {_rate(status.rows_per_s)} rows/s" if status.rows_per_s else ""
    return f"{waiting}{oldest}; {status.ingested:,} ingested{quarantined} in {batches}{rate}."


def _rate(per_second: float) -> str:
    """How many there are in a second."""
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"


def _age(seconds: float | None) -> str:
    """The time since an entry was written; a dash for none."""
    return "-" if seconds is None else display.elapsed_text(round(seconds * 1000))
