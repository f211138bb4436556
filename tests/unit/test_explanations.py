"""Every identifier that any output can show is explained, and nothing else is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import icemigrate
from icemigrate.changes.change import HazardKind
from icemigrate.cli import main
from icemigrate.commands.explain import error_kinds, explain
from icemigrate.explanations import EXPLANATION_GROUPS, EXPLANATIONS
from icemigrate.rules import RULES

PACKAGE = Path(icemigrate.__file__).parent
TESTS = Path(__file__).parents[1]
_IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+\Z")
_TELLING = {"Diagnostic", "PlanProblem", "Violation", "IrreversibleFact", "error", "warn"}
"""What is called with an identifier and a message; and what stands for one of them, for some module."""
_CODED = {"Diagnostic", "PlanProblem", "Violation"}
_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")
"""The first argument of these; a code may be one word."""
_OTHERS = re.compile(
    r"_(add|error|stop|mistake|problem|refused|need|named_twice|told|complain|wrong)\w*\Z", re.I
)
_NAMED = re.compile(r"[A-Z_]+\Z")
_NO_IDENTIFIERS = {"merge-on-read", "cat-file", "ls-tree", "rev-parse", "merge-base", "format-version"}


def in_code() -> Iterator[str]:
    """Identifiers in calls that tell something, be they chosen in place."""
    for path in PACKAGE.rglob("*.py"):
        if {"explanations", "rules"} & set(path.parts):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _CODED:
                yield from _words(node.args[0] if node.args else node, _CODE)
            if isinstance(node, ast.Call) and _tells(node.func):
                given = [*node.args[:2], *(k.value for k in node.keywords if k.arg in ("code", "rule"))]
                yield from (word for one in given for word in _words(one))


def _tells(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _TELLING or _OTHERS.match(name) is not None


def _words(node: ast.expr, form: re.Pattern[str] = _IDENTIFIER) -> Iterator[str]:
    """The identifier, or those of an `a if … else b`."""
    if isinstance(node, ast.IfExp):
        yield from (*_words(node.body, form), *_words(node.orelse, form))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and form.match(node.value):
        yield node.value


def shown() -> Iterator[str]:
    """Identifiers that documents, transcripts and cases of the tests show."""
    for path in (*TESTS.rglob("*.txt"), *TESTS.rglob("*.yaml"), *(TESTS.parent / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        yield from re.findall(r"\[([a-z]+(?:-[a-z0-9]+)+)\]$", text, re.MULTILINE)


def all_constants() -> set[str]:
    return {
        node.value
        for path in PACKAGE.rglob("*.py")
        if "told" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_identifier_is_explained() -> None:
    rules = {word for rule in RULES for word in (rule.id, rule.name)}
    found = {*in_code(), *shown(), *(kind.value for kind in HazardKind)} - _NO_IDENTIFIERS
    assert len(found) > 150, "the search finds them"
    assert found - rules - EXPLANATIONS.keys() == set()


def test_nothing_is_explained_that_nobody_tells() -> None:
    assert EXPLANATIONS.keys() - all_constants() == set()
    assert sum(map(len, EXPLANATION_GROUPS.values())) == len(EXPLANATIONS), "an identifier has one text"


@pytest.mark.parametrize("word", [*EXPLANATIONS, *error_kinds(), "IM104", "im104", "drop"])
def test_what_is_explained_is_a_page(word: str) -> None:
    text = explain(word)
    assert text.startswith("# ")
    assert len(text.splitlines()) >= 3
    assert ":class:" not in text
    assert "``" not in text.replace("```", "")


def test_a_rule_and_an_identifier_of_one_name_are_both_explained() -> None:
    text = explain("unknown-property")
    assert text.startswith("# IM501 ")
    assert "\n# unknown-property\n" in text


def test_a_slip_is_met_with_the_nearest_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "no-promotoin"]) == 64
    assert "did you mean `no-promotion`?" in capsys.readouterr().err
