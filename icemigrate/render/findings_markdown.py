"""Findings as markdown, for a pull request's comment and for the summary of a step."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.render import words
from icemigrate.render.findings_text import tally
from icemigrate.render.markdown import LIMIT, code, diagnostic_line, size, text
from icemigrate.render.places import by_weight
from icemigrate.results import CheckResult, Failure

_NOTE_SPACE = 200
"""Kept free for what says how much was left out."""


def check_markdown(result: CheckResult) -> str:
    """All findings, the weightiest first, and as many of them as a comment can hold."""
    mark = "✅" if result.ok else "❌"
    head = f"### {mark} icemigrate check: {code(result.project)}: {tally(result.diagnostics)}"
    seen = f"{words.count(result.migrations, 'migration')}, {words.count(result.tables, 'table')}."
    return _fitting([head, "", seen], result.diagnostics)


def failure_markdown(failure: Failure) -> str:
    """A fault, and the mistakes that are it."""
    lines = [f"### ❌ icemigrate: {text(failure.message)}"]
    if failure.hint:
        lines += ["", text(failure.hint)]
    return _fitting(lines, failure.diagnostics)


def _fitting(head: Sequence[str], diagnostics: Sequence[Diagnostic]) -> str:
    lines = [*head, ""]
    room = LIMIT - _NOTE_SPACE - size("\n".join(lines))
    ordered = by_weight(diagnostics)
    shown = 0
    is_folded = False
    for d in ordered:
        # What stops nothing is folded away, so that what does is seen at once.
        opening = ["", "<details><summary>Warnings and notes</summary>", ""]
        more = [*(opening if d.severity is not Severity.ERROR and not is_folded else []), diagnostic_line(d)]
        room -= sum(size(line) + 1 for line in more)
        if room < 0:
            break
        is_folded = is_folded or len(more) > 1
        lines += more
        shown += 1
    if is_folded:
        lines += ["", "</details>"]
    if left := ordered[shown:]:
        lines += ["", f"_What does not fit into a comment: {tally(left)} more. The command shows all._"]
    return "\n".join(lines).rstrip() + "\n"
