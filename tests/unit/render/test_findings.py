"""Findings as other programs read them: each format as its reader's documentation has it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.render.finding_locations import by_severity, located_findings, relative_to_repository
from icemigrate.render.formats import OUTPUT_FORMATS, render
from icemigrate.render.markdown_text import COMMENT_LIMIT, comment_size, cut_to_limit
from icemigrate.results.command_results import CheckResult, Failure
from icemigrate.rules import RULES

DATA = Path(__file__).parents[2] / "data" / "schemas"
WARNING = Diagnostic("IM104", "100%: a, b", FilePosition("m/1.yaml", 1), None, Severity.WARNING)
ERROR = Diagnostic(
    "unknown-key", "`colums` is unknown", FilePosition("m/größe, neu.yaml", 2, 3), "two\nlines"
)
NOTE = Diagnostic("seen", "nowhere", None, None, Severity.NOTE)
CHECK = CheckResult("market", 2, 1, (WARNING, ERROR, NOTE))
CLEAN = CheckResult("market", 2, 1)
FAULT = Failure("CatalogError", "it does not answer", "try again", 1)
MISTAKES = Failure("Mistakes", "1 mistake", None, 3, (ERROR,))
EVIL = Diagnostic(
    "evil",
    "]]>\n::error::\x1b[2J \ud800\uffff<b> %0A\r&\u202e",
    FilePosition("a:b,c/<d>.yaml", 1, 1),
    "\x00::x",
)
RESULTS = (CHECK, CLEAN, FAULT, MISTAKES, CheckResult("market", 1, 0, (EVIL,)))
PROGRAMS = [f.name for f in OUTPUT_FORMATS if f.for_programs and f.for_repository]


def annotations(text: str) -> list[tuple[str, dict[str, str], str]]:
    """What GitHub's runner reads in the lines of a step."""
    found = []
    for line in text.split("\n"):
        if command := re.match(r"\s*::(\w+) (.*?)::(.*)$", line):
            properties = dict(part.split("=", 1) for part in command[2].split(","))
            found.append(
                (
                    command[1],
                    {k: unescaped(v, all=True) for k, v in properties.items()},
                    unescaped(command[3]),
                )
            )
    return found


def unescaped(text: str, *, all: bool = False) -> str:
    for code, character in (("%3A", ":"), ("%2C", ",")) if all else ():
        text = text.replace(code, character)
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def test_github_shows_the_weightiest_beside_their_lines() -> None:
    text = render(CHECK, "github")
    assert annotations(text) == [
        (
            "error",
            {"file": "m/größe, neu.yaml", "line": "2", "col": "3", "title": "icemigrate unknown-key"},
            "`colums` is unknown\ntwo\nlines",
        ),
        ("warning", {"file": "m/1.yaml", "line": "1", "col": "1", "title": "icemigrate IM104"}, "100%: a, b"),
        (
            "notice",
            {"file": "icemigrate.yaml", "line": "1", "col": "1", "title": "icemigrate seen"},
            "nowhere",
        ),
    ]
    assert text.splitlines()[-1] == "market: 2 migrations, 1 table: 1 error, 1 warning and 1 note."


def test_no_text_makes_a_second_command() -> None:
    text = render(CheckResult("market", 1, 0, (EVIL,)), "github")
    (only,) = annotations(text)
    assert only[1]["file"] == "a:b,c/<d>.yaml"
    assert len(text.splitlines()) == 2


def test_a_fault_is_told_in_every_format() -> None:
    assert [a[2] for a in annotations(render(FAULT, "github"))] == ["it does not answer\ntry again"]
    assert json.loads(render(FAULT, "gitlab"))[0]["check_name"] == "CatalogError"
    (failed,) = ElementTree.fromstring(render(FAULT, "junit")).iter("failure")
    assert failed.get("type") == "CatalogError"
    (run,) = json.loads(render(FAULT, "sarif"))["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert render(FAULT, "markdown") == "### ❌ icemigrate: it does not answer\n\ntry again\n"


def test_mistakes_are_findings_and_no_fault() -> None:
    (run,) = json.loads(render(MISTAKES, "sarif"))["runs"]
    assert run["invocations"] == [{"executionSuccessful": True}]
    assert [r["ruleId"] for r in run["results"]] == ["unknown-key"]
    assert "- ❌ <code>m/größe, neu.yaml:2:3</code>" in render(MISTAKES, "markdown")


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: type(r).__name__)
def test_sarif_is_valid(result: Any) -> None:
    schema = json.loads((DATA / "sarif-2.1.0.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker()).validate(
        json.loads(render(result, "sarif"))
    )


def test_sarif_names_places_and_rules() -> None:
    (run,) = json.loads(render(CHECK, "sarif"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert all(r["help"]["text"] and r["help"]["markdown"] and r["shortDescription"]["text"] for r in rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert rules[result["ruleIndex"]]["defaultConfiguration"]["level"] == result["level"]
    # A code host shows a rule's page, also of one that finds nothing today.
    assert [r["id"] for r in rules if r["id"].startswith("IM")] == [rule.id for rule in RULES]
    assert "## Why" in next(r for r in rules if r["id"] == "IM104")["help"]["markdown"]
    first = run["results"][0]
    physical = first["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {
        "uri": "m/gr%C3%B6%C3%9Fe%2C%20neu.yaml",
        "uriBaseId": "%SRCROOT%",
    }
    assert physical["region"] == {"startLine": 2, "startColumn": 3}
    assert first["message"]["text"] == "`colums` is unknown\ntwo\nlines"


def test_junit_counts_what_it_holds() -> None:
    root = ElementTree.fromstring(render(CHECK, "junit"))
    (suite,) = root
    for counted in (root, suite):
        assert int(counted.get("tests", "")) == len(list(suite.iter("testcase"))) == 4
        assert int(counted.get("failures", "")) == len(list(suite.iter("failure"))) == 1
    failed = next(case for case in suite.iter("testcase") if case.find("failure") is not None)
    assert failed.get("file") == "m/größe, neu.yaml"
    assert failed.get("line") == "2"
    text = failed.findtext("failure") or ""
    assert text == "m/größe, neu.yaml:2:3: error: `colums` is unknown\ntwo\nlines [unknown-key]"


def test_a_check_without_findings_is_a_test_that_passed() -> None:
    root = ElementTree.fromstring(render(CLEAN, "junit"))
    assert [case.get("classname") for case in root.iter("testcase")] == ["market"]
    assert list(root.iter("failure")) == []


def test_gitlab_has_what_its_documentation_asks_for() -> None:
    issues = json.loads(render(CHECK, "gitlab"))
    assert [(i["severity"], i["location"]["path"], i["location"]["lines"]["begin"]) for i in issues] == [
        ("major", "m/größe, neu.yaml", 2),
        ("minor", "m/1.yaml", 1),
        ("info", "icemigrate.yaml", 1),
    ]
    assert all(issue["description"] and issue["check_name"] for issue in issues)
    assert json.loads(render(CLEAN, "gitlab")) == []


def test_fingerprints_stay_when_lines_move_and_differ_for_each_finding() -> None:
    def names(*diagnostics: Diagnostic) -> list[str]:
        return [f.fingerprint for f in located_findings(CheckResult("market", 1, 1, diagnostics))]

    at = [Diagnostic("code", "said twice", FilePosition("m/1.yaml", line)) for line in (1, 5, 9, 30)]
    other = Diagnostic("other", "said twice", FilePosition("m/1.yaml", 1))
    assert names(at[0], at[1]) == names(other, at[2], at[3])[1:]
    assert len(set(names(other, *at))) == 5


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_findings_give_the_same_text(name: str) -> None:
    assert render(CHECK, name) == render(CHECK, name)


@pytest.mark.parametrize("name", [*PROGRAMS, "markdown"])
def test_names_cannot_steer_anything(name: str) -> None:
    text = render(CheckResult("market", 1, 0, (EVIL,)), name)
    assert not {"\x1b", "\x00", "\u202e", "\r"} & set(text)
    text.encode("utf-8")
    if name == "junit":
        ElementTree.fromstring(text)


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("migrations/1.yaml", "lake/migrations/1.yaml"),
        ("../other/1.yaml", "other/1.yaml"),
        ("/srv/repo/lake/1.yaml", "lake/1.yaml"),
        ("/elsewhere/1.yaml", "/elsewhere/1.yaml"),
    ],
)
def test_places_begin_at_the_top_of_the_repository(file: str, shown: str) -> None:
    found = CheckResult("market", 1, 1, (Diagnostic("code", "said", FilePosition(file, 3, 4)), NOTE))
    moved = relative_to_repository(found, Path("/srv/repo/lake"), Path("/srv/repo"))
    assert moved.diagnostics == (Diagnostic("code", "said", FilePosition(shown, 3, 4)), NOTE)


def test_a_file_beyond_the_repository_is_a_whole_uri() -> None:
    found = CheckResult("market", 1, 1, (Diagnostic("code", "said", FilePosition("/else where/1.yaml")),))
    (run,) = json.loads(render(found, "sarif"))["runs"]
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "file:///else%20where/1.yaml"}
    assert unquote(location["uri"]) == "file:///else where/1.yaml"


def test_a_text_that_is_cut_closes_what_it_opens() -> None:
    text = "<details>\n\n````sql\n" + "SELECT '```😀';\n" * 9000 + "````\n</details>\n"
    short = cut_to_limit(text)
    assert COMMENT_LIMIT * 0.9 < comment_size(short) <= COMMENT_LIMIT
    assert short.count("````") == 2
    assert short.count("<details>") == short.count("</details>") == 1
    assert cut_to_limit("short\n") == "short\n"


TEXTS = st.text(max_size=60)
FILES = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=20)
PLACES = st.builds(FilePosition, FILES, st.integers(1, 9**9), st.integers(1, 9**9))
CODES = st.sampled_from(["IM104", "unknown-key"])
DIAGNOSTICS = st.builds(
    Diagnostic, CODES, TEXTS, st.none() | PLACES, st.none() | TEXTS, st.sampled_from(Severity)
)


@given(st.lists(DIAGNOSTICS, max_size=5).map(tuple))
def test_any_findings_can_be_read_back(found: tuple[Diagnostic, ...]) -> None:
    result = CheckResult("market", 1, 1, found)
    told = annotations(render(result, "github"))
    assert len(told) == len(found)
    assert len(json.loads(render(result, "gitlab"))) == len(found)
    cases = list(ElementTree.fromstring(render(result, "junit")).iter("testcase"))
    assert len(cases) == len(found) + 1
    (run,) = json.loads(render(result, "sarif"))["runs"]
    assert [r["level"] for r in run["results"]] == [d.severity.value for d in by_severity(found)]
    assert render(result, "markdown").count("<sub>") == len(found)
