"""Expressions of Jinja → the texts and lists that they mean, where the template itself has them.

Nothing is executed.  Known are literals, names that ``{% set %}`` and ``{% for %}`` bind, ``~``, ``ref``,
``source`` and ``var`` (from the project file of dbt, or its default).  Every other expression is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from icemigrate.sql_impact.sql_source import SqlFragment

REF = "__ref__"
SOURCE = "__source__"
THIS = "__this__"
UNKNOWN = "__jinja__"
"""How the SQL calls what templates stand for; a dot and names follow the first two."""
VARIABLE = f"{UNKNOWN}var__"
"""How the SQL calls a variable of dbt for which the repository has no value: it may be any column."""
ARGUMENTS = "__jinja_args__"
"""How the SQL calls a macro, with the columns that are its arguments."""

_TOKEN = re.compile(
    r"\s+|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<name>[A-Za-z_]\w*)|(?P<number>[0-9]+(?:\.[0-9]+)?)"
    r"|(?P<mark>.)",
    re.DOTALL,
)
_OPENING = {"[": "]", "(": ")", "{": "}"}
_MOST_TOKENS = 5_000
_DEEPEST = 20
_KEEPING_FILTERS = frozenset({"trim", "lower", "upper", "list", "sort", "unique", "reverse"})
"""Filters that keep the texts of a value, if in another order or case."""
_MOST_CHARACTERS = 100_000
"""How long a text that a template puts together may be; a longer one is unknown."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an expression.

    :param kind: ``text`` (a string literal), ``name``, ``number`` or ``mark``.
    :param text: as written; of a string literal, the part between the quotes.
    :param at: the index in the template; of a string literal, of its first character.
    """

    kind: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Items:
    """A list, or a mapping, whose keys are texts then."""

    values: tuple[Value, ...]
    keys: tuple[Value, ...] = ()

    def get(self, name: str) -> Value:
        """The value of a key; ``None`` where it is unknown."""
        for key, value in zip(self.keys, self.values, strict=False):
            if isinstance(key, SqlFragment) and key.text == name:
                return value
        return None


Value: TypeAlias = "SqlFragment | Items | None"
Variables: TypeAlias = Mapping[str, Value]


def tokens_of(code: str, at: int) -> list[Token]:
    """The tokens of an expression; an expression with too many has none.

    :param at: the index of its first character.
    """
    found: list[Token] = []
    for token in _TOKEN.finditer(code):
        kind = token.lastgroup
        if kind is None:
            continue
        if len(found) >= _MOST_TOKENS:
            return []
        is_text = kind == "text"
        found.append(
            Token(kind, token[0][1:-1] if is_text else token[0], at + token.start() + (1 if is_text else 0))
        )
    return found


def literals_of(code: str, at: int) -> Iterator[Token]:
    """The string literals of an expression, also of one that is too long to be evaluated."""
    for token in _TOKEN.finditer(code):
        if token.lastgroup == "text":
            yield Token("text", token[0][1:-1], at + token.start() + 1)


def text_value(token: Token) -> SqlFragment:
    """The text of a string literal, with the index of each of its characters."""
    return SqlFragment(token.text, range(token.at, token.at + len(token.text)))


def value_of(tokens: list[Token], names: Variables) -> Value:
    """What an expression means; ``None`` where it is unknown."""
    reader = _Reader(tokens, names)
    value = reader.concatenation(0)
    return value if reader.is_at_end() else None


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, tokens: list[Token], names: Variables) -> None:
        self.tokens, self.names, self.at = tokens, names, 0

    def is_at_end(self) -> bool:
        return self.at >= len(self.tokens)

    def mark(self, text: str) -> bool:
        """Step over a mark; whether it is there."""
        is_there = not self.is_at_end() and self.tokens[self.at].text == text
        is_there = is_there and self.tokens[self.at].kind == "mark"
        self.at += is_there
        return is_there

    def concatenation(self, depth: int) -> Value:
        value = self._operand(depth)
        while self.mark("~"):
            right = self._operand(depth)
            value = _joined(value, right)
        return value

    def _operand(self, depth: int) -> Value:
        if self.is_at_end() or depth > _DEEPEST:
            self.at = len(self.tokens) + 1
            return None
        token = self.tokens[self.at]
        self.at += 1
        value: Value = None
        if token.kind == "text":
            value = text_value(token)
        elif token.kind == "number":
            value = SqlFragment(token.text, [token.at] * len(token.text))
        elif token.kind == "name":
            value = self._name(token, depth)
        elif token.text in _OPENING:
            value = self._items(token.text, depth)
        return self._followed(value, depth)

    def _items(self, opening: str, depth: int) -> Value:
        keys: list[Value] = []
        values: list[Value] = []
        closing = _OPENING[opening]
        while not self.mark(closing):
            if self.is_at_end():
                self.at = len(self.tokens) + 1
                return None
            values.append(self.concatenation(depth + 1))
            if self.mark("="):
                # The value of an argument that is given by its name.
                name = self.tokens[self.at - 2].text
                values.pop()
                given = self.concatenation(depth + 1)
                values += [given] if name == "default" else []
            if self.mark(":"):
                keys.append(values.pop())
                values.append(self.concatenation(depth + 1))
            if not self.mark(",") and not self.mark(closing):
                self.at = len(self.tokens) + 1
                return None
            if self.tokens[self.at - 1].text == closing:
                break
        if opening == "(" and len(values) == 1 and not keys:
            return values[0]
        return Items(tuple(values), tuple(keys))

    def _name(self, token: Token, depth: int) -> Value:
        if token.text in {"ref", "source", "var"} and self.mark("("):
            given = self._items("(", depth)
            values = given.values if isinstance(given, Items) else (given,)
            texts = [value for value in values if isinstance(value, SqlFragment)]
            if token.text == "var":
                known = self.names.get(variable_key(texts[0].text)) if texts else None
                if known is not None:
                    return _placed(known, token.at)
                return values[1] if len(values) > 1 else SqlFragment(VARIABLE, [token.at] * len(VARIABLE))
            return _relation(token.text, texts)
        if token.text == "this":
            return SqlFragment(THIS, [token.at] * len(THIS))
        return self.names.get(token.text)

    def _followed(self, value: Value, depth: int) -> Value:
        """What an attribute, an index or a method makes of a value."""
        while True:
            if self.mark("."):
                name = self.tokens[self.at].text if not self.is_at_end() else ""
                self.at += 1
                if self.mark("("):
                    self._items("(", depth)
                    value = _method(value, name)
                else:
                    value = value.get(name) if isinstance(value, Items) else None
            elif self.mark("["):
                index = self.concatenation(depth + 1)
                if not self.mark("]"):
                    self.at = len(self.tokens) + 1
                    return None
                value = _element(value, index)
            elif self.mark("|"):
                name = self.tokens[self.at].text if not self.is_at_end() else ""
                self.at += 1
                given = self._items("(", depth) if self.mark("(") else None
                value = _filtered(value, name, given)
            else:
                return value


def variable_key(name: str) -> str:
    """The name under which :data:`Variables` have a variable of dbt."""
    return f"var {name}"


def _placed(value: Value, at: int) -> Value:
    """A value of the project file, at the index where a template uses it."""
    if isinstance(value, Items):
        keys = tuple(_placed(one, at) for one in value.keys)
        return Items(tuple(_placed(one, at) for one in value.values), keys)
    return None if value is None else SqlFragment(value.text, [at] * len(value.text))


def texts_in(value: Value) -> Iterator[SqlFragment]:
    """The texts in a value."""
    if isinstance(value, Items):
        for one in (*value.keys, *value.values):
            yield from texts_in(one)
    elif value is not None:
        yield value


def _relation(kind: str, texts: list[SqlFragment]) -> Value:
    if kind == "ref" and texts:
        name = texts[-1] if len(texts) <= 2 else texts[0]
        return _joined(SqlFragment(f"{REF}.", [name.index(0)] * (len(REF) + 1)), name)
    if kind == "source" and len(texts) == 2:
        start = SqlFragment(f"{SOURCE}.", [texts[0].index(0)] * (len(SOURCE) + 1))
        dot = SqlFragment(".", [texts[1].index(0)])
        return _joined(_joined(start, texts[0]), _joined(dot, texts[1]))
    return None


def _joined(left: Value, right: Value) -> Value:
    if not isinstance(left, SqlFragment) and not isinstance(right, SqlFragment):
        return None
    near = left if isinstance(left, SqlFragment) else right
    assert isinstance(near, SqlFragment)
    unknown = SqlFragment(UNKNOWN, [near.index(0)] * len(UNKNOWN))
    one = left if isinstance(left, SqlFragment) else unknown
    two = right if isinstance(right, SqlFragment) else unknown
    if len(one.text) + len(two.text) > _MOST_CHARACTERS:
        return None
    return SqlFragment(one.text + two.text, [*one.indexes, *two.indexes])


def _method(value: Value, name: str) -> Value:
    if not isinstance(value, Items):
        return value if name in {"strip", "lower", "upper", "include", "render"} else None
    if name == "items" and value.keys:
        return Items(tuple(Items(pair) for pair in zip(value.keys, value.values, strict=False)))
    if name == "keys":
        return Items(value.keys)
    return Items(value.values) if name == "values" else None


def _filtered(value: Value, name: str, given: Value) -> Value:
    """What a filter makes of a value; ``given`` is its argument."""
    if name == "join" and isinstance(value, Items):
        texts = [one for one in value.values if isinstance(one, SqlFragment)]
        separator = given.text if isinstance(given, SqlFragment) else ""
        characters = sum(len(one.text) + len(separator) for one in texts)
        if not texts or len(texts) != len(value.values) or characters > _MOST_CHARACTERS:
            return None
        indexes: list[int] = []
        for number, one in enumerate(texts):
            indexes += [one.index(0)] * len(separator) if number else []
            indexes += one.indexes
        return SqlFragment(separator.join(one.text for one in texts), indexes)
    return value if name in _KEEPING_FILTERS else None


def _element(value: Value, index: Value) -> Value:
    if not isinstance(value, Items) or not isinstance(index, SqlFragment):
        return None
    if value.keys:
        return value.get(index.text)
    is_inside = index.text.isdecimal() and len(index.text) < 6 and int(index.text) < len(value.values)
    return value.values[int(index.text)] if is_inside else None
