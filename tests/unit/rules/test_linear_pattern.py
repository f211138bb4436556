"""Patterns of a repository: the same answers as `re`, without backtracking."""

from __future__ import annotations

import random
import re
import warnings

import pytest

from icemigrate.rules.im401_naming import SNAKE_CASE
from icemigrate.rules.linear_pattern import PATTERN_LIMIT, TEXT_LIMIT, LinearPattern, UnsupportedPattern

PARTS = [
    *"abc()|*+?.^$_-{",
    *("(?:", "(?P<x>", "{2}", "{1,2}", "{,2}", "{2,}", "{,}", "{}", "{0}", "+?", "*?", "??"),
    *("[ab]", "[^a]", "[]a]", r"[\w-]", r"\w", r"\d", r"\.", r"\x61", r"\b"),
]


def test_a_pattern_answers_as_re_does() -> None:
    chance = random.Random(7)
    compared = 0
    for _ in range(4_000):
        pattern = "".join(chance.choices(PARTS, k=chance.randint(1, 10)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                own = LinearPattern(pattern)
                theirs = re.compile(pattern)
        except UnsupportedPattern:
            continue
        for _ in range(10):
            text = "".join(chance.choices("abc_1.{}-]", k=chance.randint(0, 7)))
            assert own.fits(text) == bool(theirs.fullmatch(text)), (pattern, text)
            compared += 1
    assert compared > 5_000


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        (SNAKE_CASE, "a_b2_c", True),
        (SNAKE_CASE, "a__b", False),
        ("^(dim|fact)_[a-z]+$", "dim_day", True),
        ("^(dim|fact)_[a-z]+$", "stage_day", False),
        ("[a-z][a-z0-9_]{0,62}", "a" * 63, True),
        ("[a-z][a-z0-9_]{0,62}", "a" * 64, False),
        (".*", "a" * (TEXT_LIMIT + 1), False),
        ("(a+)+b", "a" * TEXT_LIMIT, False),
        ("(a|aa)*b", "a" * TEXT_LIMIT, False),
        ("(.*)*" * 10 + "b", "a" * TEXT_LIMIT, False),
        ("(a|b)*a(a|b){140}", "ba" * 100, True),
        ("(" * 125 + ")" * 125, "", True),
    ],
)
def test_a_name_fits_or_does_not(pattern: str, name: str, fits: bool) -> None:
    assert LinearPattern(pattern).fits(name) is fits


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("[a-z", "unterminated character set"),
        ("(?!tmp)[a-z]+", "groups that begin with `(?`"),
        ("(?i)[a-z]+", "groups that begin with `(?`"),
        (r"(a)\1", r"`\1` is not supported"),
        (r"a\b", r"`\b` is not supported"),
        ("(a$|b)c", "`$` is supported only at the end"),
        ("a" * (PATTERN_LIMIT + 1), "251 characters, more than 250"),
        ("(a{20}){20}", "more than 300 characters and classes"),
        ("a{301}", "repeats more than 300 times"),
        ("a{" + "9" * 200 + "}", "repetition number is too large"),
        ("(" * 4 + "){99}" * 4, "nested too deeply"),
    ],
)
def test_a_pattern_that_could_take_all_time_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(UnsupportedPattern, match=re.escape(why)):
        LinearPattern(pattern)
