"""Characters that are not seen, or that change how the text around them is shown, written as escapes.

Names, comments and properties come from catalogs and files of other people.  Printed raw, an ESC steers the
terminal, a bidirectional control shows code in another order than it runs ("Trojan Source", CVE-2021-42574;
Unicode TR 36), and a zero-width character makes two names look like one.

Hidden are the categories Cc, Cf, Cs, Co, Zl and Zp, all blanks but the plain and the ideographic one,
characters without a width or a glyph of their own (fillers, tags, variation selectors), and noncharacters.
A variation selector behind a symbol stays, as in a warning sign that is shown as an emoji.
"""

from __future__ import annotations

import json
import re

_HIDDEN = (
    "[\x00-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680\u17b4\u17b5"
    "\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0d\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
    "|(?<![\xa9\xae\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
)
HIDDEN = re.compile(_HIDDEN)
"""One hidden character."""
REORDERING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""One that turns the direction of writing, or a tag character, which can carry a whole hidden text."""
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LINES = re.compile(rf"(?![\n\t])(?:{_HIDDEN})")
_PAINTED = re.compile(rf"\x1b\[[0-9]{{1,2}}m|(?![\n\t])(?:{_HIDDEN})")


def escape_hidden_characters(text: str) -> str:
    r"""The text on one line, every hidden character as ``\u202e`` or ``\U000e0041``."""
    return text if text.isascii() and text.isprintable() else HIDDEN.sub(_escape, text)


def escaped_lines(text: str, *, painted: bool = False) -> str:
    """The same with line breaks and tabs as they are.

    :param painted: also leaves the codes of :class:`~icemigrate.render.terminal_style.TerminalStyle` alone.
    """
    if _is_plain(text):
        return text
    return _PAINTED.sub(_unless_painted, text) if painted else _LINES.sub(_escape, text)


def escaped_json(document: str) -> str:
    """The text of a JSON document with the same content, hidden characters written as JSON's escapes."""
    return document if _is_plain(document) else _LINES.sub(lambda found: json.dumps(found[0])[1:-1], document)


def _is_plain(text: str) -> bool:
    return text.isascii() and (text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable())


def _unless_painted(found: re.Match[str]) -> str:
    return found[0] if len(found[0]) > 1 else _escape(found)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if found[0] in _SHORT:
        return _SHORT[found[0]]
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
