"""Colour for a terminal: a few escape codes, because a library would take longer than ``check``."""

from __future__ import annotations

import os
from typing import TextIO

from icemigrate.frozen import Frozen

_RESET = "\x1b[0m"


class TerminalStyle(Frozen):
    """How texts are emphasised; without colour every method gives its text back.

    :param details: whether texts have what most readers do not need (``--verbose``).
    :param is_ascii: whether lines and plots are drawn in ASCII: the stream cannot encode others.
    """

    colour: bool = False
    details: bool = False
    is_ascii: bool = False

    def _code(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}{_RESET}" if self.colour and text else text

    def bold(self, text: str) -> str:
        """A heading."""
        return self._code("1", text)

    def dim(self, text: str) -> str:
        """Secondary text: statements, positions, remarks."""
        return self._code("2", text)

    def good(self, text: str) -> str:
        """Additions and success."""
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


PLAIN_STYLE = TerminalStyle(False)


def style_for(stream: TextIO, wanted: bool = True, details: bool = False) -> TerminalStyle:
    """The style for a stream.

    Colour only on a terminal that supports it, never with ``NO_COLOR`` (https://no-color.org), always with
    ``FORCE_COLOR``.

    :param wanted: ``False`` for ``--no-color``.
    :param details: ``True`` for ``--verbose``.
    """
    is_ascii = not _encodes_blocks(stream)
    if not wanted or os.environ.get("NO_COLOR"):
        return TerminalStyle(False, details, is_ascii)
    if os.environ.get("FORCE_COLOR"):
        return TerminalStyle(True, details, is_ascii)
    return TerminalStyle(stream.isatty() and os.environ.get("TERM") != "dumb", details, is_ascii)


def _encodes_blocks(stream: TextIO) -> bool:
    try:
        "█╯●".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
