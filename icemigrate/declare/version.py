"""A migration's version: the digits that a file's name begins with, compared as a number."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_DIGITS = 18
"""A version must fit a signed 64-bit integer, since the history stores it as a long."""

_VERSION = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version as a number and as the user writes it.

    ``0003`` and ``3`` are the same version; ``20261127203700`` (a timestamp) is simply a larger one.
    """

    number: int
    text: str = field(compare=False)

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
