"""The result of ``test`` as text and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.findings_for_ci import xml_attribute, xml_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.migration_test_results import CaseResult, MigrationTestsResult


def tests_text(result: MigrationTestsResult, style: TerminalStyle) -> str:
    """One line for each test with its time, and the rows that differ: ``-`` is missing, ``+`` is extra."""
    lines = list[str]()
    for case in result.cases:
        mark = style.good("passed") if case.outcome == "passed" else style.bad(case.outcome)
        where = f"{display.path_text(case.file)}:{case.line}"
        took = style.dim(display.elapsed_text(case.duration_ms))
        lines.append(f"{mark}  {where}  {display.one_line(case.name)}  {took}")
        for failure in case.failures:
            lines += [f"    {_indented(line)}" for line in failure.splitlines()]
    left_out = f", {result.left_out} left out" if result.left_out else ""
    count = format_count(len(result.cases), "test")
    outcomes = f"{len(result.cases) - result.failed} passed, {result.failed} failed{left_out}"
    lines += ["", f"{count} in {display.elapsed_text(result.duration_ms)}: {outcomes}.{_spark_start(result)}"]
    return "\n".join(lines) + "\n"


def _spark_start(result: MigrationTestsResult) -> str:
    if result.spark_start_ms is None:
        return ""
    return f" The start of Spark took {display.elapsed_text(result.spark_start_ms)}."


def _indented(line: str) -> str:
    """A line with its indentation, and without what a terminal would not show."""
    text = line.lstrip(" ")
    return " " * (len(line) - len(text)) + display.note_line(text)


def tests_junit(result: MigrationTestsResult) -> str:
    """A suite with a case for each test."""
    errors = sum(case.outcome == "error" for case in result.cases)
    failures = result.failed - errors
    counts = (
        f'tests="{len(result.cases)}" failures="{failures}" errors="{errors}" '
        f'time="{result.duration_ms / 1000:.3f}"'
    )
    name = xml_attribute(result.project)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="icemigrate test" {counts}>',
        f'  <testsuite name="{name}" {counts} skipped="0">',
        *(line for case in result.cases for line in _case(case)),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(case: CaseResult) -> Iterator[str]:
    file = xml_attribute(case.file)
    head = (
        f'classname="{file}" name="{xml_attribute(case.name)}" file="{file}" line="{case.line}" '
        f'time="{case.duration_ms / 1000:.3f}"'
    )
    if not case.failures:
        yield f"    <testcase {head}/>"
        return
    kind = "error" if case.outcome == "error" else "failure"
    yield f"    <testcase {head}>"
    text = "\n".join(case.failures)
    message = xml_attribute(display.one_line(text.splitlines()[0]))
    yield f'      <{kind} type="{case.outcome}" message="{message}">{xml_text(text)}</{kind}>'
    yield "    </testcase>"
