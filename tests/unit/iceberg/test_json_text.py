"""JSON as bytes is the same JSON as text."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from icemigrate.iceberg.json_text import write_json, write_json_bytes, write_texts, write_without_floats

_ALL_CHARACTERS = "".join(map(chr, range(0x110000)))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(_ALL_CHARACTERS, id="all characters, with halves of surrogate pairs"),
        pytest.param(_ALL_CHARACTERS[:0xD800] + _ALL_CHARACTERS[0xE000:], id="all whole characters"),
        pytest.param([("key", "null"), ("other", "")], id="texts"),
        pytest.param({"a": (1, [True, None]), "b": {}, "c": -(2**63)}, id="values"),
        pytest.param({"large": 2**70}, id="a number of more than 64 bits"),
    ],
)
def test_the_bytes_are_those_of_the_text(value: Any) -> None:
    assert write_json_bytes(value) == write_json(value).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("number", [1.5, 1e16, 1e-7, -0.0, 5e-324, math.inf, -math.inf])
def test_a_number_comes_back(number: float) -> None:
    (found,) = json.loads(write_json_bytes([number]))
    assert repr(found) == repr(number)


@pytest.mark.parametrize(
    "text", [_ALL_CHARACTERS, _ALL_CHARACTERS[:0xD800] + _ALL_CHARACTERS[0xE000:], "null", ""]
)
def test_texts_are_written_as_other_values(text: str) -> None:
    for value in ({"key": text, text: "b"}, [("key", text)]):
        assert write_texts(value) == write_json(value).encode("utf-8", "surrogatepass")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [
        {"a": ['\x00\x1f\x7f\u2028/\\"', "\b\f\n\r\t", "ä\U0001f600"], "b": [None, True, -1, 2**53], "": {}},
        {"a": "\ud800"},
        [2**70],
    ],
)
def test_values_without_floats_have_the_same_text(value: Any) -> None:
    assert write_without_floats(value) == write_json(value)
