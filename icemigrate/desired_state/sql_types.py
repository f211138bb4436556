"""Column types in the SQL of other tools: ``data_type`` of a dbt model, ``physicalType`` of a contract.

Understands the nested types of Spark (``array<…>``, ``struct<a: …>``) and of Trino (``array(…)``,
``row(a …)``), lengths, precisions and ``with time zone``.
"""

from __future__ import annotations

import re

from icemigrate.desired_state.desired_table import FieldBuilder, TypeReading
from icemigrate.iceberg.other_tool_types import TypeSystem, foreign_word, iceberg_types
from icemigrate.iceberg.type_text import DEPTH_LIMIT, MAX_PRECISION
from icemigrate.iceberg.types import Decimal, Field, Fixed, List, Map, Primitive, Struct

_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|\"((?:[^\"]|\"\")+)\"|'((?:[^']|'')*)'|(\w+)|(\S))")
_CLOSING = {"<": ">", "(": ")", "[": "]"}
_PHRASES = (
    (("double", "precision"), "double"),
    (("character", "varying"), "varchar"),
    (("char", "varying"), "varchar"),
    (("binary", "varying"), "varbinary"),
)
_ZONES: dict[tuple[str, ...], bool] = {
    ("with", "time", "zone"): True,
    ("with", "local", "time", "zone"): True,
    ("without", "time", "zone"): False,
}
_TIMESTAMP = (
    "write `timestamp_ntz` (without time zone) or `timestamptz` (with): tools differ about `timestamp`"
)
_DECIMAL = "write a precision and a scale, such as `decimal(18, 6)`"
_QUESTIONS = {"timestamp": _TIMESTAMP, "number": _DECIMAL, "numeric": _DECIMAL, "decimal": _DECIMAL}


class UnreadableType(ValueError):
    """A text that is no type that Iceberg has.

    :ivar hint: the type to write instead, where that is clear.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def named_type(system: TypeSystem, word: str) -> TypeReading:
    """The type of a word without arguments.

    :raises UnreadableType: Iceberg has no such type.
    """
    meaning = iceberg_types(system, word)
    if meaning is None:
        raise UnreadableType(f"Iceberg has no type for `{word}`", foreign_word(word))
    if meaning.first is None or meaning.first == "fixed":
        question = _QUESTIONS.get(word, _DECIMAL) if word != "fixed" else "write a length: `fixed(16)`"
        return TypeReading(None, meaning.accepted, question)
    return TypeReading(Primitive(meaning.first), meaning.accepted)


def decimal_type(precision: int, scale: int) -> TypeReading:
    """A decimal.

    :raises UnreadableType: Iceberg has no decimal of this size.
    """
    if not 1 <= precision <= MAX_PRECISION or not 0 <= scale <= precision:
        raise UnreadableType(
            f"Iceberg has no `decimal({precision}, {scale})`",
            f"a precision is 1 to {MAX_PRECISION}, a scale 0 to the precision",
        )
    return TypeReading(Decimal(precision, scale))


def read_sql_type(text: str, builder: FieldBuilder) -> TypeReading:
    """Read a type; nested fields get their ids from the builder.

    :raises UnreadableType: the text is no type that Iceberg has.
    """
    reader = _Reader(text, builder)
    reading = reader.type_(0)
    if reader.at < len(reader.tokens):
        raise UnreadableType(f"unexpected `{reader.tokens[reader.at].text}` in the type `{_cut(text)}`")
    return reading


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


class _Token:
    """A word, a quoted name, a text or one other character."""

    __slots__ = ("is_name", "is_word", "text")

    def __init__(self, found: re.Match[str]) -> None:
        back, quoted, literal, word, other = found.groups()
        name = back.replace("``", "`") if back is not None else quoted and quoted.replace('""', '"')
        self.is_word, self.is_name = word is not None, word is not None or bool(name)
        self.text = name or word or other or (literal or "")

    @property
    def word(self) -> str:
        """The word in lower case; empty for anything else."""
        return self.text.lower() if self.is_word else ""


class _Reader:
    def __init__(self, text: str, builder: FieldBuilder) -> None:
        self.source, self.builder = text, builder
        self.tokens = [_Token(found) for found in _TOKEN.finditer(text)]
        self.at = 0

    def error(self, message: str) -> UnreadableType:
        return UnreadableType(f"{message} in the type `{_cut(self.source)}`")

    def type_(self, depth: int) -> TypeReading:
        if depth > DEPTH_LIMIT:
            raise self.error(f"more than {DEPTH_LIMIT} levels")
        word = self._word()
        if not word:
            raise self.error("a type is missing")
        if word in ("array", "list", "map", "struct", "row"):
            found = self._nested(word, depth)
        else:
            found = self._simple(word)
        while self._takes("["):
            while not self._takes("]"):
                self._number()
            found = self._list(found)
        return found

    def _simple(self, word: str) -> TypeReading:
        for words, name in _PHRASES:
            if word == words[0] and self._words(words[1:]):
                word = name
        arguments = self._arguments()
        for zone_words, has_zone in _ZONES.items():
            if word in ("timestamp", "time") and self._words(zone_words):
                word = word if word == "time" else "timestamptz" if has_zone else "timestamp_ntz"
        if self._words(("unsigned",)):
            raise UnreadableType(f"Iceberg has no type for `{word} unsigned`", foreign_word("unsigned"))
        if arguments and word in ("decimal", "numeric", "number", "dec", "bignumeric"):
            return decimal_type(arguments[0], arguments[1] if len(arguments) > 1 else 0)
        if arguments and word == "fixed":
            return TypeReading(Fixed(max(1, arguments[0])))
        if arguments == [9] and word in ("timestamp_ntz", "timestamptz", "timestamp_ltz"):
            word = "timestamp_ns" if word == "timestamp_ntz" else "timestamptz_ns"
        return named_type("sql", word)

    def _nested(self, word: str, depth: int) -> TypeReading:
        closing = next((_CLOSING[mark] for mark in ("<", "(") if self._takes(mark)), None)
        if closing is None:
            raise self.error(f"`{word}` without the types inside it")
        if word in ("struct", "row"):
            fields = [self._field(depth)]
            while self._takes(","):
                fields.append(self._field(depth))
            found = TypeReading(Struct(tuple(fields)))
        elif word == "map":
            key = self.type_(depth + 1)
            self._expect(",")
            value = self.type_(depth + 1)
            found = TypeReading(
                Map(
                    self.builder.field("key", key, required=True),
                    self.builder.field("value", value, required=self._is_required()),
                )
            )
        else:
            found = self._list(self.type_(depth + 1))
        self._expect(closing)
        return found

    def _list(self, element: TypeReading) -> TypeReading:
        return TypeReading(List(self.builder.field("element", element, required=self._is_required())))

    def _field(self, depth: int) -> Field:
        if self.at >= len(self.tokens) or not self.tokens[self.at].is_name:
            raise self.error("the name of a field is missing")
        name = self.tokens[self.at].text
        self.at += 1
        self._takes(":")
        reading = self.type_(depth + 1)
        required, doc = self._is_required(), None
        if self._words(("comment",)) and self.at < len(self.tokens):
            doc = self.tokens[self.at].text
            self.at += 1
        return self.builder.field(name, reading, required=required, doc=doc)

    def _is_required(self) -> bool:
        return self._words(("not", "null"))

    def _arguments(self) -> list[int]:
        out: list[int] = []
        if not self._takes("("):
            return out
        while not self._takes(")"):
            if self._word_ahead() in ("max", "char", "byte"):
                self.at += 1
            else:
                out.append(self._number())
            self._takes(",")
        return out

    def _number(self) -> int:
        text = self.tokens[self.at].text if self.at < len(self.tokens) else ""
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise self.error("a number is missing")
        self.at += 1
        return int(text)

    def _word_ahead(self) -> str:
        return self.tokens[self.at].word if self.at < len(self.tokens) else ""

    def _word(self) -> str:
        word = self._word_ahead()
        self.at += bool(word)
        return word

    def _words(self, words: tuple[str, ...]) -> bool:
        """Whether these words follow; they are taken."""
        ahead = self.tokens[self.at : self.at + len(words)]
        is_there = tuple(token.word for token in ahead) == words
        self.at += len(words) if is_there else 0
        return is_there

    def _takes(self, mark: str) -> bool:
        is_there = self.at < len(self.tokens) and self.tokens[self.at].text == mark
        self.at += is_there
        return is_there

    def _expect(self, mark: str) -> None:
        if not self._takes(mark):
            raise self.error(f"`{mark}` is missing")
