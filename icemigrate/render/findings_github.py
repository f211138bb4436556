"""Findings as workflow commands of GitHub Actions, which the pull request shows beside the lines.

GitHub keeps ten errors and ten warnings of a step, so the weightiest come first.
(https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands)
"""

from __future__ import annotations

from icemigrate.diagnostics import Severity
from icemigrate.hidden_characters import escaped_lines
from icemigrate.render import words
from icemigrate.render.findings_text import tally
from icemigrate.render.places import Finding, findings_of
from icemigrate.results import CheckResult, Failure

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def github_text(result: CheckResult | Failure) -> str:
    """One command for each finding, and for a check a last line with their number."""
    lines = [_command(finding) for finding in findings_of(result)]
    if isinstance(result, CheckResult):
        seen = f"{words.count(result.migrations, 'migration')}, {words.count(result.tables, 'table')}"
        lines.append(f"{words.one_line(result.project)}: {seen}: {tally(result.diagnostics)}.")
    return "\n".join(lines) + "\n"


def _command(finding: Finding) -> str:
    place = finding.place
    properties = {
        "file": place.file,
        "line": str(place.line),
        "col": str(place.column),
        "title": f"icemigrate {finding.code}",
    }
    shown = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {shown}::{_data(finding.text)}"


def _data(text: str) -> str:
    """As the runner reads it back; a percent sign first, since the others bring new ones."""
    return escaped_lines(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
