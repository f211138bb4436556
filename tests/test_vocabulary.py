"""One word has one meaning: names and texts use the terms of the glossary, and the list of others shrinks.

What is left is listed in ``tests/data/vocabulary.json``.  ``python -m tests.support.vocabulary`` lowers it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.cli.group import COMMANDS, LEAF_COMMANDS
from tests.support import vocabulary

LOWER = "run `python -m tests.support.vocabulary`"
SAYS_NOTHING = {
    "base",
    "common",
    "elsewhere",
    "helpers",
    "kept",
    "misc",
    "reading",
    "unread",
    "utils",
    "values",
}
"""File names that need their folder to say what the file holds."""
TWICE = {"plan"}
"""A command, and the value that it makes."""
LOOSE_MODULES = 8


def test_no_new_name_has_a_banned_word() -> None:
    allowed = set(vocabulary.baseline()["names"])
    found = {
        f"{name} ({', '.join(sorted(vocabulary.banned_in_name(name)))}): {places[0]}"
        for name, places in vocabulary.defined_names().items()
        if vocabulary.banned_in_name(name) and name not in allowed
    }
    assert sorted(found) == [], "docs/glossary.md has the words to use"


def test_the_list_of_old_names_only_shrinks() -> None:
    names = vocabulary.baseline()["names"]
    assert names == sorted(set(names))
    assert [name for name in names if name not in vocabulary.defined_names()] == [], LOWER
    assert [name for name in names if not vocabulary.banned_in_name(name)] == [], LOWER


@pytest.mark.parametrize("area", vocabulary.AREAS)
def test_texts_have_no_more_banned_words_than_before(area: str) -> None:
    allowed = vocabulary.baseline()["texts"][area]
    more = {
        word: f"{len(places)} times, {allowed.get(word, 0)} allowed: {', '.join(dict.fromkeys(places))}"
        for word, places in vocabulary.banned_in_texts(area).items()
        if len(places) > allowed.get(word, 0)
    }
    assert more == {}, "docs/glossary.md has the words to use"


def test_a_file_name_says_what_the_file_holds() -> None:
    paths: dict[str, list[Path]] = {}
    for path in vocabulary.trees():
        if not path.stem.startswith("__"):
            paths.setdefault(path.stem, []).append(path.relative_to(vocabulary.PACKAGE))
    assert SAYS_NOTHING & paths.keys() == set()
    # A command has its arguments in `cli/` and its function in `commands/`; no other two files share a name.
    modules = {name.replace(" ", "_").replace("-", "_") for name in LEAF_COMMANDS}
    of_commands = {*modules, "reconcile"} | {f"{name}_" for name in COMMANDS}
    shared = {
        name: found
        for name, found in paths.items()
        if len(found) > 1
        and not (name in of_commands and {path.parent.name for path in found} == {"cli", "commands"})
    }
    assert {name: list(map(str, found)) for name, found in shared.items() if name not in TWICE} == {}


def test_few_modules_lie_beside_the_packages() -> None:
    loose = [path.name for path in vocabulary.PACKAGE.glob("*.py") if path.name != "__init__.py"]
    assert len(loose) <= LOOSE_MODULES, sorted(loose)


def test_the_glossary_has_each_term_once() -> None:
    terms = [row[0] for row in vocabulary.glossary_rows()]
    assert len(set(terms)) == len(terms)
    assert 40 <= len(terms) <= 75


@pytest.mark.parametrize("name", sorted(set(vocabulary.glossary_names())))
def test_names_of_the_glossary_are_in_the_code(name: str) -> None:
    assert vocabulary.exists(name)
