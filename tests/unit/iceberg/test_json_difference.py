"""Differences between JSON values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icemigrate.iceberg.json_difference import json_difference, with_difference

_LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, "", "a", "\ud800"])
_KEYS = st.sampled_from(["a", "b", "set", "keep", "value"])
VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_KEYS, inner, max_size=4)
)


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(VALUES, VALUES)
def test_a_difference_gives_the_value_back_also_after_it_was_stored(base: Any, value: Any) -> None:
    difference = json.loads(json.dumps(json_difference(base, value)))
    assert text(with_difference(base, difference)) == text(value)


FIELDS = [{"id": number, "name": f"c{number}", "required": False} for number in range(100)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (FIELDS, 0),
        ([*FIELDS, 1], {"keep": [100, 0], "items": [{"value": 1}]}),
        (FIELDS[1:], {"keep": [0, 99], "items": []}),
        (
            [*FIELDS[:5], {**FIELDS[5], "name": "x"}, *FIELDS[6:]],
            {"keep": [5, 94], "items": [{"set": {"name": {"value": "x"}}, "drop": []}]},
        ),
        ([], {"value": []}),
    ],
)
def test_a_difference_has_only_what_changed(value: Any, expected: Any) -> None:
    assert json_difference(FIELDS, value) == expected


@pytest.mark.parametrize("value", [True, 1, 1.0])
def test_values_that_python_takes_for_equal_stay_different(value: Any) -> None:
    for base in (True, 1, 1.0):
        for one, other in ((base, value), ([base], [value]), ({"a": [base]}, {"a": [value]})):
            assert text(with_difference(one, json_difference(one, other))) == text(other)


@pytest.mark.parametrize(
    ("base", "difference", "message"),
    [
        ({}, 1, "1 is no difference"),
        ({}, False, "False is no difference"),
        ({}, [], r"\[\] is no difference"),
        ([], {"set": {}, "drop": []}, "another kind than its base, which is a list"),
        ({}, {"keep": [0, 0], "items": []}, "another kind than its base, which is a dict"),
        ([1], {"keep": [1, 1], "items": []}, "keeps 1 and 1 items of a list of 1"),
        ([1], {"keep": [-1, 0], "items": []}, "keeps -1 and 0 items"),
    ],
)
def test_a_difference_that_does_not_fit_is_an_error(base: Any, difference: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        with_difference(base, difference)
