"""Diagnostics and the outcome of ``check`` for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.render import words
from icemigrate.render.style import Style
from icemigrate.results import CheckResult, Failure


def diagnostics_lines(diagnostics: Iterable[Diagnostic], style: Style) -> Iterator[str]:
    """One or two lines each: ``file:line:column: error: … [code]`` and the hint."""
    paints = {Severity.ERROR: style.bad, Severity.WARNING: style.changed, Severity.NOTE: style.moved}
    for d in diagnostics:
        where = f"{style.bold(words.one_line(str(d.place)))}: " if d.place else ""
        severity = paints[d.severity](f"{d.severity.value}:")
        yield f"{where}{severity} {words.one_line(d.message)} {style.dim(f'[{d.code}]')}"
        if d.hint:
            yield from (f"    {words.visible(line)}" for line in d.hint.splitlines())


def tally(diagnostics: Iterable[Diagnostic]) -> str:
    """``2 errors and 1 warning``; ``no findings`` where there are none."""
    severities = [d.severity for d in diagnostics]
    parts = [
        words.count(number, severity.value)
        for severity in Severity
        if (number := sum(s is severity for s in severities))
    ]
    return words.listed(parts) if parts else "no findings"


def check_text(result: CheckResult, style: Style) -> str:
    """All findings, and what was looked at."""
    lines = list(diagnostics_lines(result.diagnostics, style))
    if lines:
        lines.append("")
    seen = f"{words.count(result.migrations, 'migration')}, {words.count(result.tables, 'table')}"
    if result.base is not None:
        seen += f", what is new since {words.one_line(result.base)}"
    if result.older_base is not None:
        left = words.count(result.older, "older finding")
        where = words.one_line(result.older_base)
        way = "`icemigrate check --git-base none` tells all"
        lines.append(style.dim(f"Left out: {left}, of files that are in {where}; {way}."))
    paint = style.good if result.ok else style.bad
    lines.append(f"{result.project}: {seen}: {paint(tally(result.diagnostics))}.")
    return "\n".join(lines) + "\n"


def failure_text(failure: Failure, style: Style) -> str:
    """A fault: the message, and the hint below it; mistakes one by one before it."""
    lines = list(diagnostics_lines(failure.diagnostics, style))
    if lines:
        lines.append("")
    lines.append(f"{style.bad('error:')} {words.visible(failure.message)}")
    if failure.hint:
        lines.append(f"    {words.visible(failure.hint)}")
    return "\n".join(lines) + "\n"
