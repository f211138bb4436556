"""Regular expressions that match in time linear in the text.

Python's `re` backtracks: `(a+)+` takes twice as long with each further character.  A pattern from a
repository is therefore matched by following all of its positions at once (Glushkov's automaton).
Look-around, backreferences and other constructs that need backtracking are refused.
"""

from __future__ import annotations

import re
from functools import lru_cache

from icemigrate.frozen import Frozen

PATTERN_LIMIT = 250
"""Maximum length of a pattern, in characters."""
POSITIONS_LIMIT = 300
"""Maximum number of characters and classes of a pattern with its repetitions expanded."""
TEXT_LIMIT = 255
"""Maximum length of a text, in characters; longer texts match no pattern."""
_READING_LIMIT = 5_000
"""Maximum number of parts read while a pattern is compiled, counting those that a repetition reads again."""
_STATES_LIMIT = 20_000

_TOKEN = re.compile(
    r"\(\?P<\w+>|\(\?:|\(\?|\[\^?\]?(?:\\.|[^\\\]])*\]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}"
    r"|\\.|\{(?=[0-9,])[0-9]*,?[0-9]*\}|.",
    re.DOTALL,
)
_CLASS = re.compile(r"\\[dDsSwWnrtfvaxuU]|\\[^a-zA-Z0-9]|[^\\]", re.DOTALL)
_COUNTED = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")
_ANCHORS = {"^": "beginning", "$": "end"}
_GROUPS = ("(", "(?:")


class UnsupportedPattern(ValueError):
    """The pattern is not a regular expression, or cannot be matched in linear time."""


class _Part(Frozen):
    """A part of a pattern: its positions as bits."""

    first: int
    last: int
    is_optional: bool


_EMPTY = _Part(0, 0, True)


class LinearPattern:
    """A compiled pattern.

    :raises UnsupportedPattern: with the reason.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._tokens = _tokens(pattern)
        self._at = 0
        self._read = 0
        self._atoms: list[str] = []
        self._follow: list[int] = []
        whole = self._alternatives()
        self._start, self._last, self._fits_nothing = whole.first, whole.last, whole.is_optional
        self._texts: dict[str, int] = {}
        self._classes: list[tuple[re.Pattern[str], int]] = []
        self._followers: dict[tuple[int, int], int] = {}
        self._next: dict[tuple[int, str], int] = {}
        self._characters: dict[str, int] = {}
        masks: dict[str, int] = {}
        for at, atom in enumerate(self._atoms):
            masks[atom] = masks.get(atom, 0) | 1 << at
        for atom, mask in masks.items():
            if len(atom) == 1 and atom != ".":
                self._texts[atom] = mask
            else:
                self._classes.append((re.compile(atom), mask))

    def fits(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        if len(text) > TEXT_LIMIT:
            return False
        if not text:
            return self._fits_nothing
        reached = self._start & self._mask(text[0])
        for character in text[1:]:
            if not reached:
                return False
            key = reached, character
            after = self._next.get(key)
            if after is None:
                after = self._after(reached) & self._mask(character)
                if len(self._next) < _STATES_LIMIT:
                    self._next[key] = after
            reached = after
        return bool(reached & self._last)

    def _mask(self, character: str) -> int:
        """The positions that a character fits."""
        mask = self._characters.get(character)
        if mask is None:
            mask = self._texts.get(character, 0)
            for one, positions in self._classes:
                if one.fullmatch(character):
                    mask |= positions
            self._characters[character] = mask
        return mask

    def _after(self, reached: int) -> int:
        """The positions that follow some positions, looked up eight at a time."""
        after = 0
        for at, byte in enumerate(reached.to_bytes(POSITIONS_LIMIT // 8 + 1, "little")):
            if byte:
                known = self._followers.get((at, byte))
                if known is None:
                    known = 0
                    for bit in range(8):
                        if byte >> bit & 1:
                            known |= self._follow[8 * at + bit]
                    self._followers[at, byte] = known
                after |= known
        return after

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _alternatives(self) -> _Part:
        found = self._sequence()
        while self._peek() == "|":
            self._at += 1
            other = self._sequence()
            found = _Part(
                found.first | other.first, found.last | other.last, found.is_optional or other.is_optional
            )
        return found

    def _sequence(self) -> _Part:
        found = _EMPTY
        while self._peek() not in ("", "|", ")"):
            found = self._joined(found, self._repeated())
        return found

    def _joined(self, left: _Part, right: _Part) -> _Part:
        self._connect(left.last, right.first)
        return _Part(
            left.first | (right.first if left.is_optional else 0),
            right.last | (left.last if right.is_optional else 0),
            left.is_optional and right.is_optional,
        )

    def _connect(self, lasts: int, firsts: int) -> None:
        while lasts:
            bit = lasts & -lasts
            self._follow[bit.bit_length() - 1] |= firsts
            lasts ^= bit

    def _repeated(self) -> _Part:
        start = self._at
        copies = [self._single()]
        least, most = self._counts()
        after = self._at
        while len(copies) < max(least, most or 0):
            # The part is read again for each copy, which gives it positions of its own.
            self._at = start
            copies.append(self._single())
        self._at = after
        if most == 0:
            return _EMPTY
        found = _EMPTY
        for number, copy in enumerate(copies):
            if most is None and number == len(copies) - 1:
                self._connect(copy.last, copy.first)
            found = self._joined(found, copy if number < least else _Part(copy.first, copy.last, True))
        return found

    def _counts(self) -> tuple[int, int | None]:
        """Minimum and maximum repetitions of the part before; ``None`` for no maximum."""
        token = self._peek()
        counted = _COUNTED.fullmatch(token)
        if token in ("*", "+", "?"):
            counts: tuple[int, int | None] = {"*": (0, None), "+": (1, None), "?": (0, 1)}[token]
        elif counted is not None:
            least = int(counted[1] or 0)
            most = least if not counted[2] else int(counted[3]) if counted[3] else None
            if max(least, most or 0) > POSITIONS_LIMIT:
                raise UnsupportedPattern(f"`{token}` repeats more than {POSITIONS_LIMIT} times")
            counts = least, most
        else:
            return 1, 1
        self._at += 1
        if self._peek() == "+":
            raise UnsupportedPattern(f"`{token}+` is not supported: it needs backtracking")
        if self._peek() == "?":
            self._at += 1  # A lazy repetition: no difference, since the whole text must match.
        return counts

    def _single(self) -> _Part:
        token = self._peek()
        self._at += 1
        self._read += 1
        if self._read > _READING_LIMIT:
            raise UnsupportedPattern("its repetitions are nested too deeply")
        if token in _GROUPS or token.startswith("(?P<"):
            found = self._alternatives()
            self._at += 1
            return found
        if token.startswith("(?"):
            raise UnsupportedPattern(
                "groups that begin with `(?` are not supported, except `(?:` and `(?P<name>`"
            )
        if token in _ANCHORS:
            raise UnsupportedPattern(f"`{token}` is supported only at the {_ANCHORS[token]}")
        if token[0] == "\\" and not _CLASS.fullmatch(token[:2]):
            raise UnsupportedPattern(f"`{token}` is not supported")
        if len(self._atoms) >= POSITIONS_LIMIT:
            raise UnsupportedPattern(
                f"it has more than {POSITIONS_LIMIT} characters and classes with its repetitions expanded"
            )
        self._atoms.append(token)
        self._follow.append(0)
        bit = 1 << len(self._atoms) - 1
        return _Part(bit, bit, False)


compile_pattern = lru_cache(maxsize=8)(LinearPattern)
"""A pattern, compiled once for all names that it is matched with."""


def _tokens(pattern: str) -> list[str]:
    """Tokens of the pattern, without the anchors at its ends.

    :raises UnsupportedPattern: it is too long, or not a regular expression.
    """
    if len(pattern) > PATTERN_LIMIT:
        raise UnsupportedPattern(f"it has {len(pattern):,} characters, more than {PATTERN_LIMIT}")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UnsupportedPattern(str(error)) from error
    tokens = _TOKEN.findall(pattern)
    if tokens[:1] in (["^"], [r"\A"]):
        tokens = tokens[1:]
    if tokens[-1:] in (["$"], [r"\Z"]):
        tokens = tokens[:-1]
    return tokens
