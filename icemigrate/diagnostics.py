"""Problems of a user's files as values: position, message, and hint.

All diagnostics of all files are collected and shown together, so nothing here is raised.
"""

from __future__ import annotations

import difflib
import heapq
import re
from collections.abc import Collection, Iterable
from enum import Enum
from itertools import pairwise

from msgspec.structs import force_setattr

from icemigrate.frozen import Frozen
from icemigrate.hidden_characters import escape_hidden_characters

_PART = r"[^\s`.]+"
_QUOTED = r"`(?:[^`]|``)+?`"
_TWICE = re.compile(rf"`((?:{_PART}\.)*{_QUOTED}(?:\.(?:{_PART}|{_QUOTED}))*?)`(?![`\w])")
"""Backticks around a dotted name of which a part is in backticks already.

Two backticks before a word are one backtick of a name, otherwise they end the name and the text around it.
"""
_ONE_WITH_A_DOT = re.compile(r"`(?:[^`]|``)*\.(?:[^`]|``)*`\Z")


def once_quoted(text: str, beside: str = "") -> str:
    """A message whose names have one pair of backticks.

    Messages put names in backticks, and a name that is not a plain word brings its own: then the outer ones
    are removed.  A single name with a dot keeps both if the text also contains the path that is written
    alike, because the two must differ.  This is done here and not where each message is written, so that no
    message forgets it.

    :param beside: text that is shown together with it, such as a hint.
    """

    def once(found: re.Match[str]) -> str:
        name = found[1]
        is_taken_for_a_path = _ONE_WITH_A_DOT.match(name) and re.search(
            rf"(?<!`){re.escape(name)}(?!`)", f"{text} {beside}"
        )
        return found[0] if is_taken_for_a_path else name

    return _TWICE.sub(once, text) if text.count("`") > 3 else text


LONGEST_TEXT = 2_000
"""The maximum length of a message or a hint, which may quote a megabyte of a file; in characters."""


def shorten_message(text: str) -> str:
    """The text, without its middle where it is longer than :data:`LONGEST_TEXT`."""
    if len(text) <= LONGEST_TEXT:
        return text
    head, tail = LONGEST_TEXT * 3 // 4, LONGEST_TEXT // 4
    return f"{text[:head]} … ({len(text) - head - tail:,} characters left out) … {text[-tail:]}"


class Severity(str, Enum):
    """The severity of a diagnostic: an error stops the command, the others do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class FilePosition(Frozen, order=True):
    """A position in a file.

    :param file: path as the user would type it, relative to the working directory where possible.
    :param line: 1-based.
    :param column: 1-based, in characters.
    """

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{escape_hidden_characters(self.file)}:{self.line}:{self.column}"


class Replacement(Frozen):
    """Text of a file that `check --fix` replaces.

    :param old: in the line of the diagnostic, at its position or after it.
    :param new: the only text that can be meant.
    :param offset: characters of a value before ``old``; 0 at its beginning.
    """

    old: str
    new: str
    offset: int = 0


class Diagnostic(Frozen):
    """One diagnostic.

    :param code: permanent kebab-case identifier, e.g. ``unknown-key``; tests and ignores rely on it.
    :param message: one sentence that names the offending word.
    :param hint: what to write or do instead.
    :param replacement: the correction; ``None`` where a person must choose one.
    """

    code: str
    message: str
    place: FilePosition | None = None
    hint: str | None = None
    severity: Severity = Severity.ERROR
    replacement: Replacement | None = None

    def __post_init__(self) -> None:
        message = shorten_message(self.message)
        force_setattr(self, "message", once_quoted(message))
        if self.hint is not None:
            force_setattr(self, "hint", once_quoted(shorten_message(self.hint), message))

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        hint = f"\n    {self.hint}" if self.hint else ""
        return f"{where}{self.severity.value}: {self.message} [{self.code}]{hint}"


def sort_key(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
    """Order of showing: by file, then position, then code."""
    place = diagnostic.place or FilePosition("")
    return (place.file, place.line, place.column, diagnostic.code)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether one of the diagnostics stops the command."""
    return any(d.severity is Severity.ERROR for d in diagnostics)


_LONGEST_GUESS = 200
_COMPARISONS = 200_000
"""Of names, for the hints of one file."""
_GUESSES = 500_000
"""Of names, in all calls of :func:`did_you_mean` for the files of a command."""
_CLOSEST = 20
"""Only so many names, which share the most pairs of letters, are compared by :mod:`difflib`: it is slow."""
_remaining_comparisons = [_COMPARISONS]
_remaining_guesses = [_GUESSES]


def renew_hints(*, for_all_files: bool = False) -> None:
    """Reset the limit of hints for the next file or migration.

    :param for_all_files: also the limit for all files together.
    """
    _remaining_comparisons[0] = _COMPARISONS
    if for_all_files:
        _remaining_guesses[0] = _GUESSES


def can_hint(comparisons: int) -> bool:
    """Whether the limit of comparisons allows another hint; counts them."""
    _remaining_comparisons[0] -= comparisons
    return _remaining_comparisons[0] > 0


def did_you_mean(word: str, known: Iterable[str], careful: Collection[str] = ()) -> str | None:
    """A hint with the word of :func:`most_similar`."""
    near = most_similar(word, known, careful)
    return None if near is None else did_you_mean_word(near)


def did_you_mean_word(word: str) -> str:
    """The hint with one word."""
    return f"did you mean `{word}`?"


def most_similar(word: str, known: Iterable[str], careful: Collection[str] = ()) -> str | None:
    """The most similar known word, or ``None`` where none is similar.

    Case and ``-``/``_`` are ignored in comparisons, because those are the usual typing errors.

    Comparisons take long, so one file and all files get only a limited number of hints
    (:func:`renew_hints`).

    :param careful: known words that are suggested for a single typing error only, because they destroy
        something.
    """
    if len(word) > _LONGEST_GUESS or not can_hint(0):
        return None
    known = list(known)
    if not can_hint(len(known)) or _remaining_guesses[0] <= 0:
        return None
    _remaining_guesses[0] -= len(known)
    plain = word.lower().replace("-", "_")
    replayed = {k.lower().replace("-", "_"): k for k in known}
    for one in [one for one, name in replayed.items() if name in careful]:
        if plain != one and not has_edit_distance_one(plain, one):
            del replayed[one]
    closest: Iterable[str] = replayed
    if len(replayed) > _CLOSEST:
        pairs = _letter_pairs(plain)
        closest = heapq.nlargest(_CLOSEST, replayed, key=lambda name: _overlap(pairs, _letter_pairs(name)))
    near = difflib.get_close_matches(plain, closest, n=1, cutoff=0.6)
    return replayed[near[0]] if near else None


def _letter_pairs(word: str) -> frozenset[tuple[str, str]]:
    return frozenset(pairwise(f" {word} "))


def _overlap(one: frozenset[tuple[str, str]], other: frozenset[tuple[str, str]]) -> float:
    """Dice's coefficient: from 0 to 1 for the same pairs."""
    return 2 * len(one & other) / (len(one) + len(other))


def has_edit_distance_one(a: str, b: str) -> bool:
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


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 table``, ``2 tables``, ``1,000 tables``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def format_size(size: int) -> str:
    """A number of bytes, in powers of 1000: ``812 B``, ``1.4 MB``."""
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_SIZE_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{size} B" if not unit else f"{value:.3g} {_SIZE_UNITS[unit]}"


_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)[ _]?([kmgt])(i)?b?", re.IGNORECASE)


def bytes_of_size(text: str) -> str | None:
    """A size with a unit as a number of bytes, in words: ``10 MB is 10000000, 10 MiB is 10485760``.

    :returns: ``None`` for other texts.
    """
    if (found := _SIZE.fullmatch(text.strip())) is None:
        return None
    number, letter, is_binary = found[1], found[2].lower(), found[3] is not None
    power = "kmgt".index(letter) + 1
    exact = round(float(number) * 1024**power)
    unit = "k" if letter == "k" and not is_binary else letter.upper()
    if is_binary:
        return f"{number} {unit}iB is {exact}"
    return f"{number} {unit}B is {round(float(number) * 1000**power)}, {number} {letter.upper()}iB is {exact}"
