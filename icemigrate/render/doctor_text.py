"""What ``doctor`` found, for people."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.render import words
from icemigrate.render.style import Style
from icemigrate.results import Checkup, DoctorResult

_MARKS = {"ok": "✓", "note": "!", "failed": "✗", "skipped": "–"}


def doctor_text(result: DoctorResult, style: Style) -> str:
    """One line for each thing that was tried, with its way out below it; then what the catalog can do."""
    lines = [line for checkup in result.checkups for line in _lines(checkup, style)]
    if result.abilities:
        lines += ["", f"With a catalog of kind `{result.catalog}`:"]
        for ability in result.abilities:
            mark = style.good("+") if ability.can else style.changed("-")
            lines.append(f"  {mark} {words.one_line(ability.text)}")
    failed = sum(c.state == "failed" for c in result.checkups)
    verdict = style.good("all that was tried works") if result.ok else style.bad(f"{failed} failed")
    lines += ["", f"{result.project} in {result.environment}: {verdict}."]
    return "\n".join(lines) + "\n"


def _lines(checkup: Checkup, style: Style) -> Iterator[str]:
    paint = {"ok": style.good, "note": style.changed, "failed": style.bad, "skipped": style.dim}[
        checkup.state
    ]
    first, *others = words.visible(checkup.text).splitlines() or [""]
    yield f"{paint(_MARKS[checkup.state])} {style.bold(checkup.name)}: {first}"
    yield from (f"    {line}" for line in others)
    if checkup.hint:
        yield from (f"    {style.dim('→')} {line}" for line in words.visible(checkup.hint).splitlines())
