"""Diagnostics and the outcome of ``check`` for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.diagnostics import Diagnostic, Severity, format_count
from icemigrate.render import display, phrases
from icemigrate.render.alike_findings import alike_findings
from icemigrate.render.alike_tables import others_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.command_results import CheckResult, Failure


def diagnostics_lines(diagnostics: Iterable[Diagnostic], style: TerminalStyle) -> Iterator[str]:
    """One to three lines each: ``file:line:column: error: … [code]``, names of others, and the hint."""
    paints = {Severity.ERROR: style.bad, Severity.WARNING: style.changed, Severity.NOTE: style.moved}
    for group in alike_findings(diagnostics, shows_all=style.details):
        d = group.findings[0]
        where = f"{style.bold(display.one_line(str(d.place)))}: " if d.place else ""
        severity = paints[d.severity](f"{d.severity.value}:")
        yield f"{where}{severity} {display.one_line(d.message)} {style.dim(f'[{d.code}]')}"
        if group.others:
            yield f"    {style.dim(others_text(group.others, 'other', display.one_line))}"
        if d.hint:
            yield from (f"    {line}" for line in display.message_text(d.hint).splitlines())


def severity_counts(diagnostics: Iterable[Diagnostic]) -> str:
    """``2 errors and 1 warning``; ``no findings`` where there are none."""
    severities = [d.severity for d in diagnostics]
    parts = [
        format_count(number, severity.value)
        for severity in Severity
        if (number := sum(s is severity for s in severities))
    ]
    return phrases.join_with_and(parts) if parts else "no findings"


def check_text(result: CheckResult, style: TerminalStyle) -> str:
    """All findings, and what was checked."""
    lines = list(diagnostics_lines(result.diagnostics, style))
    if lines:
        lines.append("")
    tables = format_count(result.tables, "table")
    seen = f"{format_count(result.migrations, 'migration')}, {tables}"
    if result.base is not None:
        seen += f", new since {display.one_line(result.base)}"
    if result.older_base is not None:
        left = format_count(result.older, "older finding")
        where = display.one_line(result.older_base)
        way = "`icemigrate check --git-base none` shows all"
        lines.append(style.dim(f"Omitted: {left} of files that are already on {where}; {way}."))
    paint = style.good if result.ok else style.bad
    lines.append(f"{result.project}: {seen}: {paint(severity_counts(result.diagnostics))}.")
    return "\n".join(lines) + "\n"


def failure_text(failure: Failure, style: TerminalStyle) -> str:
    """An error: the message, and the hint below it; diagnostics one by one before it."""
    lines = list(diagnostics_lines(failure.diagnostics, style))
    if lines:
        lines.append("")
    lines.append(f"{style.bad('error:')} {display.message_text(failure.message)}")
    if failure.hint:
        lines.append(f"    {display.message_text(failure.hint)}")
    return "\n".join(lines) + "\n"
