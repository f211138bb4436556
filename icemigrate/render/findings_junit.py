"""Findings as JUnit's XML, which nearly every CI reads: an error is a test that failed.

Warnings and notes are tests that passed and printed something, since a JUnit test cannot do less than fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from icemigrate.diagnostics import Severity
from icemigrate.hidden_characters import escaped_lines
from icemigrate.render import words
from icemigrate.render.places import Finding, findings_of
from icemigrate.results import CheckResult, Failure


def junit_text(result: CheckResult | Failure) -> str:
    """A suite with a case for each finding; the first case is the check itself, so that none is empty."""
    findings = findings_of(result)
    errors = [f for f in findings if f.severity is Severity.ERROR]
    name = result.project if isinstance(result, CheckResult) else "icemigrate"
    counts = f'tests="{len(findings) + 1}" failures="{len(errors)}" errors="0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="icemigrate check" {counts}>',
        f'  <testsuite name="{_attribute(name)}" {counts} skipped="0">',
        f'    <testcase classname="{_attribute(name)}" name="every file was looked at"/>',
        *(line for finding in findings for line in _case(finding)),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(finding: Finding) -> Iterator[str]:
    place = finding.place
    head = (
        f'classname="{_attribute(place.file)}" name="{_attribute(f"{finding.code} at {place}")}" '
        f'file="{_attribute(place.file)}" line="{place.line}"'
    )
    text = _text(f"{place}: {finding.severity.value}: {finding.text} [{finding.code}]")
    yield f"    <testcase {head}>"
    if finding.severity is Severity.ERROR:
        message = _attribute(words.one_line(finding.message))
        yield f'      <failure type="{_attribute(finding.code)}" message="{message}">{text}</failure>'
    else:
        yield f"      <system-out>{text}</system-out>"
    yield "    </testcase>"


def _text(text: str) -> str:
    return escape(_possible(text), quote=False)


def _attribute(text: str) -> str:
    """A line break in an attribute would be read as a space."""
    return escape(_possible(text)).replace("\n", "&#10;")


def _possible(text: str) -> str:
    """What no XML document may hold, escaped or not (XML 1.0, section 2.2), is hidden too."""
    return escaped_lines(text)
