"""Rows as aligned columns, as wide as their characters are on a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from icemigrate.render.terminal_style import TerminalStyle

_COLUMN_SEPARATOR = "  "


def text_columns(rows: Sequence[tuple[str, ...]], heads: tuple[str, ...], style: TerminalStyle) -> list[str]:
    """Rows as aligned columns with headings; empty without rows."""
    if not rows:
        return []
    widths = [max(_width(row[i]) for row in (heads, *rows)) for i in range(len(heads))]

    def line(row: tuple[str, ...]) -> str:
        return _COLUMN_SEPARATOR.join(
            c + " " * (w - _width(c)) for c, w in zip(row, widths, strict=True)
        ).rstrip()

    return [style.dim(line(heads)), *map(line, rows)]


def _width(text: str) -> int:
    """How many cells a text takes on a terminal, escape codes not counted."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in plain)
    marks = sum(unicodedata.combining(c) != 0 for c in plain)
    return len(plain) + wide - marks
