"""Colour for a terminal, in one place: a few escape codes, since a library would cost more than ``check``."""

from __future__ import annotations

import os
from typing import TextIO

from icemigrate.frozen import Frozen

_RESET = "\x1b[0m"


class Style(Frozen):
    """How texts are emphasised; without colour every method gives its text back."""

    colour: bool = False

    def _code(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}{_RESET}" if self.colour and text else text

    def bold(self, text: str) -> str:
        """A heading."""
        return self._code("1", text)

    def dim(self, text: str) -> str:
        """What may be passed over: statements, places, asides."""
        return self._code("2", text)

    def good(self, text: str) -> str:
        """Additions, and what is well."""
        return self._code("32", text)

    def changed(self, text: str) -> str:
        """Changes, and warnings."""
        return self._code("33", text)

    def bad(self, text: str) -> str:
        """Removals, errors and conflicts."""
        return self._code("31", text)

    def moved(self, text: str) -> str:
        """Renames and moves."""
        return self._code("36", text)

    def symbol(self, symbol: str) -> str:
        """A change's symbol in its colour."""
        paint = {"+": self.good, "-": self.bad, "→": self.moved}.get(symbol, self.changed)
        return paint(symbol)


PLAIN = Style(False)


def style_for(stream: TextIO, wanted: bool = True) -> Style:
    """The style for a stream.

    Colour only on a terminal that has it, never with ``NO_COLOR`` (https://no-color.org), always with
    ``FORCE_COLOR``.

    :param wanted: ``False`` when the user said ``--no-color``.
    """
    if not wanted or os.environ.get("NO_COLOR"):
        return PLAIN
    if os.environ.get("FORCE_COLOR"):
        return Style(True)
    return Style(stream.isatty() and os.environ.get("TERM") != "dumb")
