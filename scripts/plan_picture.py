"""The picture of a plan in the README: the console block of the page that shows ``icemigrate plan``, as SVG.

The tests of the documentation run that block, so the picture shows what the command prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

_COMMAND = "$ icemigrate plan"
_FONT, _CHARACTER, _LINE, _MARGIN, _BAR = 13, 7.83, 19, 18, 34
_BACKGROUND, _TEXT, _DIM = "#161b22", "#e6edf3", "#8b949e"
_GREEN, _RED, _YELLOW, _CYAN = "#3fb950", "#ff7b72", "#d29922", "#39c5cf"
_SYMBOLS = {"+": _GREEN, "-": _RED, "~": _YELLOW, "→": _CYAN}
_LINES_OF_COLOUR = (
    (re.compile(r"destructive|incompatible|irreversible|reversible (?:while|until)"), _YELLOW),
    (re.compile(r"reversible|note: |ALTER|CREATE|CALL|UPDATE|\(metadata commit\)"), _DIM),
)
"""As `icemigrate.render.plan_text` paints what is below a change."""


def plan_picture(page: str) -> str:
    """The SVG of the plan on a page."""
    lines = _transcript(page)
    width = round(max(map(len, lines)) * _CHARACTER + 2 * _MARGIN)
    height = _BAR + len(lines) * _LINE + _MARGIN
    shown = "".join(_line(line, _BAR + (i + 1) * _LINE) for i, line in enumerate(lines))
    buttons = "".join(
        f'<circle cx="{_MARGIN + 18 * i}" cy="17" r="5" fill="{colour}"/>\n'
        for i, colour in enumerate((_RED, _YELLOW, _GREEN))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{escape(_COMMAND[2:])}</title>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="{_BACKGROUND}"/>\n{buttons}'
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="{_FONT}" '
        f'fill="{_TEXT}">\n{shown}</g>\n</svg>\n'
    )


def _transcript(page: str) -> list[str]:
    """The command, and what it prints until the next one."""
    after = page[page.index(f"\n{_COMMAND}\n") + 1 :]
    end = re.search(r"^(?:```|\$ (?!icemigrate plan$))", after, re.MULTILINE)
    assert end is not None
    return after[: end.start()].rstrip().splitlines()


def _line(line: str, y: int) -> str:
    spans = "".join(
        f'<tspan fill="{colour}"{weight}>{_text(text)}</tspan>'
        for text, colour, weight in _spans(line)
        if text
    )
    return f'<text x="{_MARGIN}" y="{y}">{spans}</text>\n' if spans else ""


def _spans(line: str) -> Iterator[tuple[str, str, str]]:
    bold = ' font-weight="bold"'
    indent, text = line[: len(line) - len(line.lstrip())], line.strip()
    yield indent, _TEXT, ""
    if text[:2] == "$ ":
        yield text[:2], _DIM, ""
        yield text[2:], _TEXT, bold
    elif text[1:2] == " " and text[0] in _SYMBOLS:
        yield text[0], _SYMBOLS[text[0]], ""
        yield text[1:], _TEXT, bold if text[0] == "~" else ""
    elif len(indent) > 2:
        colour = next((colour for pattern, colour in _LINES_OF_COLOUR if pattern.match(text)), _DIM)
        yield text, colour, ""
    else:
        yield text, _DIM if "→" in text else _TEXT, "" if "→" in text else bold


def _text(text: str) -> str:
    """Text whose blanks stay as they are."""
    return escape(text).replace(" ", "\u00a0")
