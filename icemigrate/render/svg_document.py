"""Parts of SVG pictures: plain, with a title and a description for readers that do not see them."""

from __future__ import annotations

from html import escape

from icemigrate.render.display import one_line

TEXT, DIM, LINE, BACKGROUND = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
BLUE, GREEN, ORANGE, PURPLE, RED = "#0969da", "#1a7f37", "#9a6700", "#8250df", "#cf222e"
LANE_COLOURS = (BLUE, GREEN, ORANGE, PURPLE, RED)
_SANS = "ui-sans-serif, system-ui, sans-serif"
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


def svg_document(width: int, height: int, title: str, description: str, body: str) -> str:
    """A picture.

    :param title: what it shows, as text.
    :param description: its content in words, as text.
    :param body: elements.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title description">\n'
        f'<title id="title">{svg_escape(title)}</title>\n'
        f'<desc id="description">{svg_escape(description)}</desc>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>\n'
        f'<g font-family="{_SANS}" font-size="13" fill="{TEXT}">\n{body}</g>\n</svg>\n'
    )


def svg_escape(text: str) -> str:
    """Text of an element: on one line, hidden characters as escapes, special ones as entities."""
    return escape(one_line(text))


def svg_text(x: float, y: float, text: str, attributes: str = "") -> str:
    """A line of text.

    :param attributes: further attributes, with a blank before the first.
    """
    return f'<text x="{x:g}" y="{y:g}"{attributes}>{svg_escape(text)}</text>\n'
