"""Mistakes of the user as values: what, where, and what to do about it.

All mistakes of all files are collected and shown at once, so nothing here is raised.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from enum import Enum

from msgspec.structs import force_setattr

from icemigrate.frozen import Frozen

_PART = r"[^\s`.]+"
_QUOTED = r"`(?:[^`]|``)+`"
_TWICE = re.compile(rf"`((?:{_PART}\.)*{_QUOTED}(?:\.(?:{_PART}|{_QUOTED}))*)`(?!`)")
"""Backticks around a dotted name of which a part stands in backticks already."""
_ONE_WITH_A_DOT = re.compile(r"`(?:[^`]|``)*\.(?:[^`]|``)*`\Z")


def once_quoted(text: str, beside: str = "") -> str:
    """A message whose names stand in backticks once.

    Messages put names in backticks, and a name that is no plain word brings its own: then those around it go.
    One name with a dot in it keeps both where the path that is written alike is spoken of too, for it has to
    be told from that.  All this is done here and not where each message is written, for one place cannot
    forget it.

    :param beside: what is told together with it, a hint's message.
    """

    def once(found: re.Match[str]) -> str:
        name = found[1]
        is_taken_for_a_path = _ONE_WITH_A_DOT.match(name) and re.search(
            rf"(?<!`){re.escape(name)}(?!`)", f"{text} {beside}"
        )
        return found[0] if is_taken_for_a_path else name

    return _TWICE.sub(once, text) if text.count("`") > 3 else text


LONGEST_TEXT = 2_000
"""A message or a hint may quote what a file says, which may be a megabyte; in characters."""


def shortened(text: str) -> str:
    """The text, without its middle where it is longer than :data:`LONGEST_TEXT`."""
    if len(text) <= LONGEST_TEXT:
        return text
    head, tail = LONGEST_TEXT * 3 // 4, LONGEST_TEXT // 4
    return f"{text[:head]} … ({len(text) - head - tail:,} characters left out) … {text[-tail:]}"


class Severity(str, Enum):
    """How much a diagnostic weighs: an error stops the command, the others do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Place(Frozen, order=True):
    """A position in a file.

    :param file: path as the user would type it, relative to the working directory where possible.
    :param line: 1-based.
    :param column: 1-based, in characters.
    """

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Diagnostic(Frozen):
    """One mistake.

    :param code: permanent kebab-case identifier, e.g. ``unknown-key``; tests and ignores rely on it.
    :param message: one sentence, naming the offending word.
    :param hint: what to write or do instead.
    """

    code: str
    message: str
    place: Place | None = None
    hint: str | None = None
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        message = shortened(self.message)
        force_setattr(self, "message", once_quoted(message))
        if self.hint is not None:
            force_setattr(self, "hint", once_quoted(shortened(self.hint), message))

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        hint = f"\n    {self.hint}" if self.hint else ""
        return f"{where}{self.severity.value}: {self.message} [{self.code}]{hint}"


def sort_key(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
    """Order of showing: by file, then position, then code."""
    place = diagnostic.place or Place("")
    return (place.file, place.line, place.column, diagnostic.code)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether one of the diagnostics stops the command."""
    return any(d.severity is Severity.ERROR for d in diagnostics)


_LONGEST_GUESS = 200
_COMPARISONS = 200_000
_left = [_COMPARISONS]


def renew_hints() -> None:
    """Let the next file or migration be given hints again, however many the one before needed."""
    _left[0] = _COMPARISONS


def can_hint(comparisons: int) -> bool:
    """Whether a hint that takes so many comparisons may still be looked for; they are counted."""
    _left[0] -= comparisons
    return _left[0] > 0


def did_you_mean(word: str, known: Iterable[str], careful: Collection[str] = ()) -> str | None:
    """A hint that names the nearest known word, or ``None`` where none is near.

    Case and ``-``/``_`` are ignored while comparing, since those are the usual slips.

    Comparing takes long, so that one file is given only so many hints (:func:`renew_hints`).

    :param careful: known words that are guessed from one slip alone, for they destroy something.
    """
    if len(word) > _LONGEST_GUESS or not can_hint(0):
        return None
    known = list(known)
    if not can_hint(len(known)):
        return None
    plain = word.lower().replace("-", "_")
    folded = {k.lower().replace("-", "_"): k for k in known}
    for one in [one for one, name in folded.items() if name in careful]:
        if plain != one and not one_slip(plain, one):
            del folded[one]
    near = difflib.get_close_matches(plain, folded, n=1, cutoff=0.6)
    return f"did you mean `{folded[near[0]]}`?" if near else None


def one_slip(a: str, b: str) -> bool:
    """Whether a word is the other with a character more, less or changed, or two neighbours changed over."""
    if len(a) > len(b):
        a, b = b, a
    if len(b) - len(a) > 1:
        return False
    at = 0
    while at < len(a) and a[at] == b[at]:
        at += 1
    if len(a) < len(b):
        return a[at:] == b[at + 1 :]
    changed_over = b[at + 1 : at + 2] + b[at : at + 1]
    return a[at + 1 :] == b[at + 1 :] or a[at:] == changed_over + b[at + 2 :]
