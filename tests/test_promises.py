"""The page of promises is complete: every promise names tests that exist, or is listed as not shown."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "promises.md"
SECTIONS = {
    "What apply promises": "A",
    "What rollback promises": "R",
    "Files and history over time": "F",
    "What is shown and saved": "S",
    "Sessions, networks and limits": "L",
    "What a repository cannot do": "T",
}


def sections() -> dict[str, list[list[str]]]:
    """The rows of each section's table, as cells."""
    found: dict[str, list[list[str]]] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        rows = [line for line in text.splitlines() if line.startswith("|")][2:]
        found[title] = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return found


ROWS = [row for title in SECTIONS for row in sections()[title]]
NAMED = sorted({test for row in ROWS for test in re.findall(r"`(tests/[^`]+)`", row[2])})


@cache
def names_in(path: Path) -> frozenset[str]:
    """The names of a file's tests, which is not imported: that might start Spark."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")
    )


def test_the_page_has_its_sections() -> None:
    assert list(sections()) == [*SECTIONS]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_promise_names_its_tests(row: list[str]) -> None:
    number, promise, shown_by = row
    assert promise.endswith("."), number
    for test in shown_by.split("<br>"):
        assert re.fullmatch(r"`tests/[\w/]+\.py::test_\w+`", test), f"{number}: {test or 'no test'}"


@pytest.mark.parametrize("test", NAMED)
def test_every_named_test_exists(test: str) -> None:
    path, _, name = test.partition("::")
    assert (ROOT / path).is_file(), f"there is no {path}"
    assert name in names_in(ROOT / path), f"{path} has no {name}"


@pytest.mark.parametrize(("title", "letter"), SECTIONS.items())
def test_no_promise_is_missing(title: str, letter: str) -> None:
    shown = [row[0] for row in sections()[title]]
    numbers = sorted(int(number.removeprefix(letter)) for number in shown)
    assert numbers == list(range(1, len(numbers) + 1)), "each number once"
