"""Comments that keep a rule from speaking."""

from __future__ import annotations

import pytest

from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.ignore_comments import read_ignores
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version

REASON = "# icemigrate: ignore IM104 because nobody reads it"


@pytest.mark.parametrize(
    ("comment", "rules", "reason"),
    [
        ("# icemigrate: ignore IM104 because nobody reads it", ("IM104",), "nobody reads it"),
        ("#icemigrate: ignore IM104 because: nobody", ("IM104",), "nobody"),
        ("# icemigrate:  ignores IM104,drop , IM101 because x ", ("IM104", "drop", "IM101"), "x"),
        ("# icemigrate: ignore IM104", ("IM104",), ""),
        ("# icemigrate: ignore IM104 because", ("IM104",), ""),
        ("# icemigrate: ignore", (), ""),
        ("# icemigrate: ignore because nobody reads it", (), ""),
        ("# icemigrate: ignore IM104 IM105 because x", (), ""),
        ("# icemigrate: forget IM104 because x", (), ""),
        ("# icemigrate:", (), ""),
    ],
)
def test_what_it_says(comment: str, rules: tuple[str, ...], reason: str) -> None:
    (found,) = read_ignores(SourceText("m.yaml", f"{comment}\ntables: []\n"))
    assert (found.rules, found.reason, found.line) == (rules, reason, 2)


@pytest.mark.parametrize(
    "text", ["a: icemigrate: x", "# see icemigrate:ignore", "a: b#icemigrate: ignore IM1", ""]
)
def test_what_is_none(text: str) -> None:
    assert read_ignores(SourceText("m.yaml", text)) == ()


@pytest.mark.parametrize(
    "text",
    [
        f'description: "see {REASON}"\n',
        f"description: 'see\n  {REASON}'\n",
        f"description: |\n  first\n  {REASON}\ntables: []\n",
        f"description: >-\n  first\n\n    {REASON}\n",
    ],
)
def test_what_stands_in_a_text_is_none(text: str) -> None:
    assert read_ignores(SourceText("m.yaml", text)) == ()


@pytest.mark.parametrize(
    ("text", "line", "place"),
    [
        (f"a: 1  {REASON}\nb: 2\n", 1, (1, 7)),
        (f"a: 1\n  {REASON}\nb: 2\n", 3, (2, 3)),
        (f"{REASON}\n\n# another comment\n  \nb: 2\n", 5, (1, 1)),
        (f"{REASON}\n{REASON}\nb: 2\n", 3, (1, 1)),
        (f"a: 1\n{REASON}\n", 0, (2, 1)),
        (f'a: "# x"  {REASON}\n', 1, (1, 11)),
        (f"é: |  {REASON}\n  text\nb: 1\n", 1, (1, 7)),
        (f"a:\n  b: |\n    text\n\n  {REASON}\n  c: 1\n", 6, (5, 3)),
        (f"a: |\n  {REASON}\n{REASON}\nb: 1\n", 4, (3, 1)),
    ],
)
def test_which_line_it_is_about(text: str, line: int, place: tuple[int, int]) -> None:
    found = read_ignores(SourceText("m.yaml", text))[0]
    assert found.line == line
    assert (found.place.line, found.place.column) == place


def test_it_is_no_part_of_what_a_migration_says() -> None:
    text = "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n"
    plain, commented = (
        read_migration(SourceText("m.yaml", t), Version.parse("1"), "m").migration
        for t in (text, f"{REASON}\n{text}")
    )
    assert plain is not None
    assert commented is not None
    assert len(commented.ignores) == 1
    assert plain.checksum == commented.checksum
