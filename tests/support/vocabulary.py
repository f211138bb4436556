"""The project's words: banned words in names and texts, the names in the code, and the terms of the glossary.

``python -m tests.support.vocabulary`` lowers the baseline in ``tests/data/vocabulary.json`` to what is left.
It never raises a count and never adds a name.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "icemigrate"
GLOSSARY = ROOT / "docs" / "glossary.md"
BASELINE = ROOT / "tests" / "data" / "vocabulary.json"

_DIALECT = """
    breach breaches complaint complaints fate fold folded folding folds gap gaps harm harms lateness latecomer
    latecomers legality lie lies lying maker makers mend mended mending mends nobody somebody stake stakes
    standing tell telling tells told upkeep whom
"""
IN_NAMES = set(_DIALECT.split()) | {
    "ground",
    "lake",
    "marks",
    "means",
    "moments",
    "stands",
    "voids",
    "ways",
    "world",
}
"""Words that no name has.  Texts need some of them, as in "this means"."""
IN_TEXTS = set(_DIALECT.split()) | {"shall", "stand", "stands", "stood"}
"""Words that no text has."""

_WORD_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORD = re.compile(r"[a-z_]+")
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@cache
def trees() -> Mapping[Path, ast.Module]:
    """Every module of the package, parsed."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def defined_names() -> Mapping[str, list[str]]:
    """Names of modules, classes, fields, functions, parameters and module constants, with their files."""
    found: dict[str, list[str]] = {}
    for path, tree in trees().items():
        for name in (
            path.stem,
            *_functions_and_classes(tree),
            *_fields_and_parameters(tree),
            *_constants(tree),
        ):
            found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def _functions_and_classes(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def _fields_and_parameters(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.ClassDef):
            yield from _constants(node)


def _constants(node: ast.Module | ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


@cache
def attributes() -> frozenset[str]:
    """``Class.name`` for every member, field and method of a class."""
    found = set[str]()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                methods = (n.name for n in node.body if isinstance(n, ast.FunctionDef))
                found |= {f"{node.name}.{name}" for name in (*methods, *_constants(node))}
    return frozenset(found)


def banned_in_name(name: str) -> set[str]:
    """The banned words of a name in snake case or camel case."""
    return {word.lower() for word in _WORD_OF_NAME.findall(name)} & IN_NAMES


def texts_of_code() -> Iterator[tuple[str, str]]:
    """String literals of the package with their places; docstrings are left out."""
    for path, tree in trees().items():
        documented = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def docstrings_and_comments() -> Iterator[tuple[str, str]]:
    """Docstrings and comments of the package with their places, without code spans."""
    for path, tree in trees().items():
        place = path.relative_to(ROOT)
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield f"{place}:{node.lineno}", _CODE_SPAN.sub("", str(node.value.value))
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            if token.type == tokenize.COMMENT:
                yield f"{place}:{token.start[0]}", _CODE_SPAN.sub("", token.string)


def texts_of_pages() -> Iterator[tuple[str, str]]:
    """The lines of the README and of the pages below ``docs/``, without code spans: these are names."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text(encoding="utf-8")
        fenced = {n for match in _FENCED.finditer(text) for n in _line_numbers(text, match)}
        for number, line in enumerate(text.splitlines(), start=1):
            shown = line if number in fenced else _CODE_SPAN.sub("", line)
            yield f"{path.relative_to(ROOT)}:{number}", shown


def _line_numbers(text: str, match: re.Match[str]) -> range:
    first = text.count("\n", 0, match.start()) + 1
    return range(first, first + match[0].count("\n") + 1)


AREAS = {"code": texts_of_code, "docstrings": docstrings_and_comments, "docs": texts_of_pages}
"""Where texts are written."""


@cache
def banned_in_texts(area: str) -> Mapping[str, tuple[str, ...]]:
    """Banned words of an area, each with the places that have it, once for every time."""
    found: dict[str, list[str]] = {}
    for place, text in AREAS[area]():
        for word in _WORD.findall(text.lower()):
            if word in IN_TEXTS:
                found.setdefault(word, []).append(place)
    return {word: tuple(places) for word, places in found.items()}


def glossary_rows() -> list[list[str]]:
    """The rows of the glossary's tables of terms, as cells."""
    lines = GLOSSARY.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("| **")]
    return [[cell.strip() for cell in row] for row in rows]


def glossary_names() -> list[str]:
    """Every name that the last column of the glossary mentions."""
    return [name for row in glossary_rows() for name in re.findall(r"`([^`]+)`", row[-1])]


def exists(name: str) -> bool:
    """Whether the code has a name: ``Plan``, ``drift()``, ``Direction.APPLY`` or ``planning/undo/``."""
    name = name.removesuffix("()")
    if "/" in name:
        return (PACKAGE / name).exists()
    return name in attributes() if "." in name else name in defined_names()


def baseline() -> dict[str, Any]:
    """What was left when it was last lowered."""
    found: dict[str, Any] = json.loads(BASELINE.read_text(encoding="utf-8"))
    return found


def lowered(old: Mapping[str, Any]) -> dict[str, Any]:
    """A baseline without names that are gone, and with lower counts where texts have become better."""
    texts = {}
    for area, words in old["texts"].items():
        now = {word: len(places) for word, places in banned_in_texts(area).items()}
        texts[area] = {word: min(count, now[word]) for word, count in words.items() if word in now}
    return {"names": [name for name in old["names"] if name in defined_names()], "texts": texts}


def main() -> None:
    """Lower the baseline."""
    text = json.dumps(lowered(baseline()), indent=2, ensure_ascii=False) + "\n"
    if text != BASELINE.read_text(encoding="utf-8"):
        BASELINE.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{BASELINE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
