"""Findings as markdown, for a pull request's comment and for the summary of a step."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.diagnostics import Diagnostic, Severity, format_count
from icemigrate.render.alike_findings import alike_findings, finding_line
from icemigrate.render.finding_locations import by_severity
from icemigrate.render.findings_text import severity_counts
from icemigrate.render.markdown_text import (
    COMMENT_LIMIT,
    comment_size,
    inline_code,
    safe_text,
)
from icemigrate.results.command_results import CheckResult, Failure

_NOTE_SPACE = 200
"""Reserved for the note about omitted findings."""


def check_markdown(result: CheckResult) -> str:
    """All findings, the most severe first, as many as a comment can contain."""
    mark = "✅" if result.ok else "❌"
    head = (
        f"### {mark} icemigrate check: {inline_code(result.project)}: {severity_counts(result.diagnostics)}"
    )
    tables = format_count(result.tables, "table")
    seen = f"{format_count(result.migrations, 'migration')}, {tables}."
    return _fitting([head, "", seen], result.diagnostics)


def failure_markdown(failure: Failure) -> str:
    """A fault, and the mistakes that are it."""
    lines = [f"### ❌ icemigrate: {safe_text(failure.message)}"]
    if failure.hint:
        lines += ["", safe_text(failure.hint)]
    return _fitting(lines, failure.diagnostics)


def _fitting(head: Sequence[str], diagnostics: Sequence[Diagnostic]) -> str:
    lines = [*head, ""]
    room = COMMENT_LIMIT - _NOTE_SPACE - comment_size("\n".join(lines))
    groups = alike_findings(by_severity(diagnostics))
    shown = 0
    is_collapsed = False
    for group in groups:
        # Findings that stop nothing are collapsed, so that the others are visible at once.
        opening = ["", "<details><summary>Warnings and notes</summary>", ""]
        more = [
            *(opening if group.findings[0].severity is not Severity.ERROR and not is_collapsed else []),
            finding_line(group),
        ]
        room -= sum(comment_size(line) + 1 for line in more)
        if room < 0:
            break
        is_collapsed = is_collapsed or len(more) > 1
        lines += more
        shown += 1
    if is_collapsed:
        lines += ["", "</details>"]
    if left := [one for group in groups[shown:] for one in group.findings]:
        lines += [
            "",
            f"_Not shown: {severity_counts(left)}, which do not fit into a comment. The command shows all._",
        ]
    return "\n".join(lines).rstrip() + "\n"
