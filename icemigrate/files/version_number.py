"""A migration's version: the digits that a file's name begins with, compared as a number."""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final

MAX_DIGITS = 18
"""A version must fit a signed 64-bit integer, since the history stores it as a long."""

_VERSION = re.compile(r"[0-9]{1,18}")


@total_ordering
class Version:
    """A version as a number and as the user writes it.

    ``0003`` and ``3`` are the same version; ``20261127203700`` (a timestamp) is simply a larger one.

    It is no struct and no dataclass, since ``msgspec`` would then encode it as an object.
    """

    __slots__ = ("number", "text")

    def __init__(self, number: int, text: str) -> None:
        self.number: Final = number
        self.text: Final = text

    def __eq__(self, other: object) -> bool:
        return self.number == other.number if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: Version) -> bool:
        return self.number < other.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        return f"Version({self.number}, {self.text!r})"

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read ``0003``.

        :raises ValueError: when the text is not 1 to 18 ASCII digits.
        """
        if not _VERSION.fullmatch(text):
            raise ValueError(f"a version is 1 to {MAX_DIGITS} digits, not {text!r}")
        return cls(int(text), text)


def number_of(text: str) -> int | None:
    """The number of a version that the user names; leading zeros do not count.  ``None`` for other texts."""
    digits = text.lstrip("0")
    if not text or not (digits == "" or _VERSION.fullmatch(digits)):
        return None
    return int(digits or "0")
