"""Column types as text: reads and writes them.

The words are Iceberg's (specification, "Primitive Types"); unambiguous words of Spark are read as well
(``bigint``, ``array<…>``, ``timestamp_ntz``).  In a struct a field is ``name: [required] type
['description']``; ``not null`` after the type means the same as ``required``.  Unusual names are in
backticks, a quote inside a description is doubled. Case matters in names only.  Text has no defaults and no
field ids: every field has the id :data:`~icemigrate.iceberg.types.UNASSIGNED`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from icemigrate.diagnostics import Replacement, did_you_mean, did_you_mean_word, most_similar
from icemigrate.iceberg.names import quote_name
from icemigrate.iceberg.other_tool_types import foreign_phrase, foreign_word
from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.types import (
    DEFAULT_CRS,
    EDGE_ALGORITHMS,
    PRIMITIVES,
    UNASSIGNED,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Primitive,
    Struct,
    Type,
)

DEPTH_LIMIT = 64
"""How deep types may nest: far deeper than a table that anybody can read."""

MAX_PRECISION = 38
"""Of a decimal (specification, "Primitive Types")."""

_SYNONYMS = {
    "bigint": "long",
    "integer": "int",
    "real": "float",
    "timestamp_ntz": "timestamp",
    "timestamp_ltz": "timestamptz",
    "array": "list",
    "dec": "decimal",
    "numeric": "decimal",
}
_WITH_ARGUMENTS = ("decimal", "fixed", "geometry", "geography", "struct", "list", "map")
_KNOWN = (*PRIMITIVES, *_WITH_ARGUMENTS)
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[0-9]+")
_NOT_NULL = re.compile(r"not\s+null\b", re.IGNORECASE)
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_BACKTICKED = re.compile(r"`((?:[^`]|``)+)`")
_PLAIN_NAME = re.compile(r"[^\W\d]\w*\s*(?=:)")


class TypeSyntaxError(ValueError):
    """A text that is not a type.

    :ivar offset: position in the text, 0-based, in characters. :ivar hint: the type to write instead, where
        that is clear. :ivar replacement: the correction of a word, where only one is possible.
    """

    def __init__(
        self, message: str, offset: int, hint: str | None = None, replacement: Replacement | None = None
    ) -> None:
        super().__init__(message)
        self.offset = offset
        self.hint = hint
        self.replacement = replacement


@lru_cache(maxsize=2048)
def parse_type(text: str) -> Type:
    """Read a type.

    :raises TypeSyntaxError: the text is no type, or nests deeper than :data:`DEPTH_LIMIT`.
    """
    reader = _Reader(text)
    type_ = reader.type_(0)
    if reader.at < len(text):
        raise reader.error(f"unexpected `{text[reader.at :]}` after the type", _trailing_hint(reader))
    return type_


def format_type(type_: Type) -> str:
    """The type as text; :func:`parse_type` reads it back, but for ids and defaults, which text has not."""
    if isinstance(type_, Struct):
        return f"struct<{', '.join(_format_field(f) for f in type_.fields)}>"
    if isinstance(type_, List):
        return f"list<{_format_part(type_.element)}>"
    if isinstance(type_, Map):
        return f"map<{format_type(type_.key.type)}, {_format_part(type_.value)}>"
    if isinstance(type_, Decimal):
        return f"decimal({type_.precision},{type_.scale})"
    return primitive_text(type_)


def _format_part(field: Field) -> str:
    return ("required " if field.required else "") + format_type(field.type)


def _format_field(field: Field) -> str:
    doc = "" if field.doc is None else " '" + field.doc.replace("'", "''") + "'"
    return f"{quote_name(field.name)}: {_format_part(field)}{doc}"


def _trailing_hint(reader: _Reader) -> str | None:
    if reader.peek(_NOT_NULL) or reader.peek(re.compile(r"required\b", re.IGNORECASE)):
        return "write `required: true` next to the type of the column"
    return None


class _Reader:
    """A position in a text, moved forward by what is read; spaces behind each token are skipped."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._skip()

    def error(self, message: str, hint: str | None = None, at: int | None = None) -> TypeSyntaxError:
        return TypeSyntaxError(message, self.at if at is None else at, hint)

    def peek(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self.text, self.at)

    def type_(self, depth: int) -> Type:
        start = self.at
        if depth > DEPTH_LIMIT:
            raise self.error(f"types nest deeper than {DEPTH_LIMIT} levels")
        if (phrase := foreign_phrase(self.text, start)) is not None:
            raise self.error(f"unknown type `{phrase[0]}`", phrase[1], start)
        word = self._take(_WORD)
        if word is None:
            raise self.error(f"expected a type, found {self._found()}")
        name = word[0].lower()
        name = _SYNONYMS.get(name, name)
        if self._sees("(") and name in PRIMITIVES:
            raise self.error(f"`{word[0]}` takes no arguments", f"write `{name}`")
        if name in PRIMITIVES:
            return Primitive(name)
        readers: dict[str, Callable[[int], Type]] = {
            "decimal": self._decimal,
            "fixed": self._fixed,
            "geometry": self._geometry,
            "geography": self._geography,
            "struct": lambda at: self._struct(at, depth),
            "list": lambda at: self._list(at, depth),
            "map": lambda at: self._map(at, depth),
        }
        if name in readers:
            return readers[name](start)
        foreign = foreign_word(name)
        similar = most_similar(name, (*_KNOWN, *_SYNONYMS)) if foreign is None else None
        near = None if similar is None else _SYNONYMS.get(similar, similar)
        hint = foreign if near is None else did_you_mean_word(near)
        meant = None if near is None else Replacement(word[0], near, start)
        raise TypeSyntaxError(f"unknown type `{word[0]}`", start, hint, meant)

    def _decimal(self, start: int) -> Type:
        if not self._accept("("):
            raise self.error("a decimal needs a precision and a scale", "for example `decimal(18,6)`", start)
        precision = self._number("the precision")
        if not self._accept(","):
            raise self.error("a decimal also needs a scale", f"write `decimal({precision},0)`")
        scale = self._number("the scale")
        self._expect(")")
        if not 1 <= precision <= MAX_PRECISION:
            raise self.error(
                f"the precision of a decimal must be 1 to {MAX_PRECISION}, not {precision}", None, start
            )
        if scale > precision:
            raise self.error(
                f"the scale of a decimal ({scale}) must not exceed its precision ({precision})", None, start
            )
        return Decimal(precision, scale)

    def _fixed(self, start: int) -> Type:
        closing = {"[": "]", "(": ")"}.get(self.text[self.at : self.at + 1])
        if closing is None:
            raise self.error("`fixed` needs a length in bytes", "for example `fixed[16]`", start)
        self._expect(self.text[self.at])
        length = self._number("the length in bytes")
        self._expect(closing)
        if length < 1:
            raise self.error("the length of `fixed` must be at least 1", None, start)
        return Fixed(length)

    def _geometry(self, start: int) -> Type:
        arguments = self._arguments()
        if len(arguments) > 1:
            raise self.error("`geometry` takes one argument, the reference system", None, start)
        return Geometry.of(*arguments)

    def _geography(self, start: int) -> Type:
        arguments = self._arguments()
        if len(arguments) > 2:
            raise self.error(
                "`geography` takes at most two arguments, the reference system and the edge algorithm",
                None,
                start,
            )
        if len(arguments) == 2 and arguments[1].lower() not in EDGE_ALGORITHMS:
            known = (
                did_you_mean(arguments[1].lower(), EDGE_ALGORITHMS) or f"one of {', '.join(EDGE_ALGORITHMS)}"
            )
            raise self.error(f"unknown edge algorithm `{arguments[1]}`", known, start)
        if len(arguments) == 1 and arguments[0].lower() in EDGE_ALGORITHMS:
            text = f"geography({DEFAULT_CRS}, {arguments[0].lower()})"
            raise self.error(
                f"`{arguments[0]}` is not a reference system, which comes first", f"write `{text}`", start
            )
        return Geography.of(*arguments)

    def _arguments(self) -> list[str]:
        if not self._accept("("):
            return []
        end = self.text.find(")", self.at)
        if end < 0:
            raise self.error(f"expected `)`, found {self._found(len(self.text))}", at=len(self.text))
        arguments = [a.strip() for a in self.text[self.at : end].split(",")]
        if not all(arguments):
            raise self.error("empty argument")
        self.at = end
        self._expect(")")
        return arguments

    def _list(self, start: int, depth: int) -> Type:
        self._open(start, "list<string>")
        required, type_ = self._part(depth)
        self._expect(">")
        return List(Field(UNASSIGNED, "element", type_, required))

    def _map(self, start: int, depth: int) -> Type:
        self._open(start, "map<string, long>")
        _, key = self._part(depth)
        if self._sees(">"):
            only = self.text[start : self.at].partition("<")[2].strip()
            raise self.error(
                f"a map needs two types, of its keys and of its values, and has only `{only}`",
                f"for example `map<string, {only}>`",
                start,
            )
        self._expect(",")
        required, value = self._part(depth)
        self._expect(">")
        return Map(Field(UNASSIGNED, "key", key, True), Field(UNASSIGNED, "value", value, required))

    def _struct(self, start: int, depth: int) -> Type:
        self._open(start, "struct<a: int, b: string>")
        fields: dict[str, Field] = {}
        while not self._sees(">"):
            if fields:
                self._expect(",")
            at = self.at
            field = self._field(depth)
            if field.name in fields:
                raise self.error(f"the struct has two fields named `{field.name}`", None, at)
            fields[field.name] = field
        self._expect(">")
        return Struct(tuple(fields.values()))

    def _field(self, depth: int) -> Field:
        name = self._name()
        self._expect(":")
        required, type_ = self._part(depth)
        self._keyword("comment")
        doc = self._take(_QUOTED)
        return Field(
            UNASSIGNED, name, type_, required, doc=None if doc is None else doc[1].replace("''", "'")
        )

    def _part(self, depth: int) -> tuple[bool, Type]:
        required = self._keyword("required")
        type_ = self.type_(depth + 1)
        return (self._take(_NOT_NULL) is not None) or required, type_

    def _name(self) -> str:
        if quoted := self._take(_BACKTICKED):
            return quoted[1].replace("``", "`")
        if plain := self._take(_PLAIN_NAME):
            return plain[0].rstrip()
        odd = re.compile(r"[^:<>`']+(?=:)").match(self.text, self.at)
        if odd:
            name = odd[0].strip()
            raise self.error(f"the name `{name}` needs backticks", f"write {quote_name(name)}")
        hint = "write a field as `name: type`" if self.peek(_WORD) else None
        raise self.error(f"expected a field name and `:`, found {self._found()}", hint)

    def _number(self, what: str) -> int:
        match = self._take(_NUMBER)
        if match is None:
            raise self.error(f"expected {what}, found {self._found()}")
        return int(match[0][:10])

    def _open(self, start: int, example: str) -> None:
        if not self._accept("<"):
            raise self.error(
                f"`{self.text[start : self.at].strip()}` needs type arguments",
                f"for example `{example}`",
                start,
            )

    def _keyword(self, word: str) -> bool:
        match = self.peek(re.compile(rf"{word}\b\s*", re.IGNORECASE))
        if match is None:
            return False
        self.at = match.end()
        return True

    def _sees(self, char: str) -> bool:
        return self.text.startswith(char, self.at)

    def _accept(self, char: str) -> bool:
        if not self._sees(char):
            return False
        self.at += len(char)
        self._skip()
        return True

    def _expect(self, char: str) -> None:
        if not self._accept(char):
            raise self.error(f"expected `{char}`, found {self._found()}")

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = self.peek(pattern)
        if match:
            self.at = match.end()
            self._skip()
        return match

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def _found(self, at: int | None = None) -> str:
        rest = self.text[self.at if at is None else at :]
        if not rest:
            return "the end"
        word = _WORD.match(rest)
        return f"`{word[0] if word else rest[0]}`"
