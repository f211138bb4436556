"""Findings for CI services: workflow commands of GitHub Actions, GitLab's code quality report, JUnit XML.

Sources: https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands (GitHub shows ten
errors and ten warnings of a step, so the most severe come first) and
https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format.  In JUnit an error is a failed
test; warnings and notes are passed tests with output, since a JUnit test has no weaker result than a failure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape

from icemigrate.diagnostics import Severity, format_count
from icemigrate.hidden_characters import escaped_json, escaped_lines
from icemigrate.redaction import redact_document
from icemigrate.render import display
from icemigrate.render.finding_locations import LocatedFinding, located_findings
from icemigrate.render.findings_text import severity_counts
from icemigrate.results.command_results import CheckResult, Failure

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def github_text(result: CheckResult | Failure) -> str:
    """One command for each finding, and for a check a last line with their number."""
    lines = [_command(finding) for finding in located_findings(result)]
    if isinstance(result, CheckResult):
        tables = format_count(result.tables, "table")
        seen = f"{format_count(result.migrations, 'migration')}, {tables}"
        lines.append(f"{display.one_line(result.project)}: {seen}: {severity_counts(result.diagnostics)}.")
    return "\n".join(lines) + "\n"


def _command(finding: LocatedFinding) -> str:
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
    """Escape data as the runner reads it; a percent sign first, because the other escapes contain one."""
    return escaped_lines(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab_text(result: CheckResult | Failure) -> str:
    """A JSON list; GitLab recognizes known findings by their fingerprints."""
    document = [
        {
            "description": finding.text,
            "check_name": finding.code,
            "fingerprint": finding.fingerprint,
            "severity": _SEVERITIES[finding.severity],
            "location": {"path": finding.place.file, "lines": {"begin": finding.place.line}},
        }
        for finding in located_findings(result)
    ]
    return escaped_json(json.dumps(redact_document(document), indent=2, ensure_ascii=False)) + "\n"


def junit_text(result: CheckResult | Failure) -> str:
    """A suite with a case for each finding; the first case is the check itself, so that none is empty."""
    findings = located_findings(result)
    errors = [f for f in findings if f.severity is Severity.ERROR]
    name = result.project if isinstance(result, CheckResult) else "icemigrate"
    counts = f'tests="{len(findings) + 1}" failures="{len(errors)}" errors="0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="icemigrate check" {counts}>',
        f'  <testsuite name="{xml_attribute(name)}" {counts} skipped="0">',
        f'    <testcase classname="{xml_attribute(name)}" name="every file was checked"/>',
        *(line for finding in findings for line in _case(finding)),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(finding: LocatedFinding) -> Iterator[str]:
    place = finding.place
    head = (
        f'classname="{xml_attribute(place.file)}" name="{xml_attribute(f"{finding.code} at {place}")}" '
        f'file="{xml_attribute(place.file)}" line="{place.line}"'
    )
    text = xml_text(f"{place}: {finding.severity.value}: {finding.text} [{finding.code}]")
    yield f"    <testcase {head}>"
    if finding.severity is Severity.ERROR:
        message = xml_attribute(display.one_line(finding.message))
        yield f'      <failure type="{xml_attribute(finding.code)}" message="{message}">{text}</failure>'
    else:
        yield f"      <system-out>{text}</system-out>"
    yield "    </testcase>"


def xml_text(text: str) -> str:
    """A text as the content of an element."""
    return escape(_possible(text), quote=False)


def xml_attribute(text: str) -> str:
    """A text as the value of an attribute, where a line break would be read as a space."""
    return escape(_possible(text)).replace("\n", "&#10;")


def _possible(text: str) -> str:
    """The text without characters that no XML document may contain, escaped or not (XML 1.0, section 2.2)."""
    return escaped_lines(text)
