"""Values of tables as short texts on one line: names, sizes, numbers."""

from __future__ import annotations

import json

from icemigrate.diagnostics import format_size
from icemigrate.render import display
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.table_results import SnapshotInfo

LONGEST_NAME = 80
"""How many characters of a name, a path or a value are shown in a line."""
_NAMED = 5


def short_text(text: str, longest: int = LONGEST_NAME) -> str:
    """A text on one line, hidden characters as escapes; a long one without its middle."""
    shown = display.one_line(text[: 4 * longest] if len(text) > 8 * longest else text)
    if len(shown) <= longest and len(text) <= 8 * longest:
        return shown
    end = longest // 3
    tail = display.one_line(text[-4 * end :])[-end:]
    return f"{shown[: longest - end - 1]}…{tail}"


def value_text(value: str | None, longest: int) -> str:
    """A value as :func:`short_text`; in quotes where blanks and line breaks are a part of it."""
    if value is None:
        return "null"
    is_plain = value == value.strip() and value not in ("", "null") and not set(value) & set("\t\n\r")
    return short_text(value if is_plain else json.dumps(value, ensure_ascii=False), longest)


def number_text(number: int | None) -> str:
    """A number with separators; a dash for one that is unknown."""
    return "-" if number is None else f"{number:,}"


def size_text(number: int | None) -> str:
    """A number of bytes; a dash for one that is unknown."""
    return "-" if number is None else format_size(number)


def refs_text(entry: SnapshotInfo, style: TerminalStyle, *, is_graph: bool = False) -> str:
    """The branches and tags of a snapshot, a few of many.

    :param is_graph: whether they are in brackets, the tags marked, as ``git log --decorate`` shows them.
    """
    word = "tag: " if is_graph else ""
    names = [style.good(short_text(name)) for name in entry.branches]
    names += [style.changed(f"{word}{short_text(name)}") for name in entry.tags]
    shown = ", ".join(names[:_NAMED])
    if len(names) > _NAMED:
        shown += f" and {len(names) - _NAMED:,} more"
    return f"({shown})" if is_graph and shown else shown
