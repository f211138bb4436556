"""The words of test data, and the endings of column names that suggest a meaning.

``vocabulary.json`` is shared with the Rust crate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from icemigrate.frozen import Frozen

_NO_WORD = re.compile(r"[^A-Za-z0-9]")


class NumberRange(Frozen):
    """How numbers of a meaning are distributed: ``low`` plus a number, divided by ``10**scale``.

    :param below: the number is uniform below it, if it is given.
    :param bits: the number is log-uniform with as many bits, if they are given.
    """

    low: int
    scale: int
    below: int | None = None
    bits: int | None = None


class Vocabulary(Frozen):
    """The words, meanings and number ranges.

    :param meanings: the meaning of each ending of a column's name.
    :param choices: the words of a meaning, the most frequent first; their number is ``2**n - 1``.
    """

    meanings: Mapping[str, str]
    numbers: Mapping[str, NumberRange]
    choices: Mapping[str, tuple[str, ...]]
    first_names: tuple[str, ...]
    last_names: tuple[str, ...]
    domains: tuple[str, ...]
    map_keys: tuple[str, ...]
    words: tuple[str, ...]

    def meaning_of(self, name: str) -> str | None:
        """The meaning of a column's name: of its longest ending, word by word, that the vocabulary has."""
        words = words_of(name)
        endings = ("_".join(words[first:]) for first in range(len(words)))
        return next((self.meanings[ending] for ending in endings if ending in self.meanings), None)

    def numbers_of(self, meaning: str | None) -> NumberRange:
        """The numbers of a meaning, or the default ones."""
        return self.numbers.get(meaning or "default", self.numbers["default"])


def words_of(name: str) -> list[str]:
    """The words of a name in lower case.

    A name is split at what is no ASCII letter or digit, and before a capital letter that follows a small one.
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word.lower() for word in _NO_WORD.split(spaced) if word]


@cache
def vocabulary() -> Vocabulary:
    """The shared vocabulary, read once."""
    text = Path(__file__).with_name("vocabulary.json").read_text(encoding="utf-8")
    data = json.loads(text)
    return Vocabulary(
        meanings={ending: name for name, endings in data["meanings"].items() for ending in endings},
        numbers={name: NumberRange(**given) for name, given in data["numbers"].items()},
        choices={name: tuple(words) for name, words in data["choices"].items()},
        **{key: tuple(data[key]) for key in ("first_names", "last_names", "domains", "map_keys", "words")},
    )
