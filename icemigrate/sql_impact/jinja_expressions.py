"""``{{ … }}`` of a template → the SQL that replaces it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from icemigrate.sql_impact.jinja_values import (
    ARGUMENTS,
    REF,
    SOURCE,
    UNKNOWN,
    Token,
    Value,
    Variables,
    literals_of,
    text_value,
    texts_in,
    tokens_of,
    value_of,
)
from icemigrate.sql_impact.sql_source import FragmentBuilder, SqlFragment

COLUMNS = "__jinja_columns__"
"""How the SQL calls a macro whose arguments are surely columns."""

_SILENT = frozenset({"config", "log", "print", "return", "exceptions", "do"})
_TAKES_COLUMNS = frozenset({"generate_surrogate_key", "surrogate_key", "hash", "safe_add", "safe_divide"})
_NAMED = frozenset({"relation", "from", "table", "model", "relations"})
"""Arguments of macros that name a relation; as a text, a common table expression."""
_NO_COLUMNS = frozenset({"alias", "prefix", "suffix", "datepart", "format", "timezone", "quote_identifiers"})
"""Arguments of macros that are no columns."""
_NAMES_OTHERS = frozenset(
    {"ref", "source", "var", "env_var", "log", "print", "doc", "statement", "load_result"}
)
"""Functions of dbt whose texts are no columns."""
_IDENTIFIER = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_LIST = re.compile(
    rf"\s*{_IDENTIFIER}(?:\s+(?:asc|desc))?(?:\s*,\s*{_IDENTIFIER}(?:\s+(?:asc|desc))?)*\s*", re.I
)
_FUNCTION = re.compile(rf"\s*\w+\(\s*(?:{_IDENTIFIER}(?:\s*,\s*{_IDENTIFIER})*)?\s*\)\s*")
_NAME = re.compile(_IDENTIFIER)
_ORDER = frozenset({"asc", "desc", "nulls", "first", "last"})


class Place(Enum):
    """Where in a query an expression is."""

    RELATION = "behind FROM, JOIN or INTO"
    QUERY = "instead of a whole query"
    WORD = "beside the letters of a name"
    OTHER = "anywhere else"

    @classmethod
    def of(cls, before: str, after: str) -> Place:
        """The place between two pieces of SQL."""
        last = before.rstrip()[-200:]
        if (before[-1:].isalnum() or before[-1:] == "_") or after[:1].isalnum() or after[:1] == "_":
            return cls.WORD
        words = re.findall(r"\w+|[^\w\s]", last.lower())[-2:]
        ahead = after.lstrip()
        if words and words[-1] in {"from", "join", "into", "using", "update", "table"}:
            return cls.RELATION
        is_last = not ahead or ahead.startswith((")", ";", "{%", "union"))
        if words[-1:] in ([], [")"], [";"]) and is_last:
            return cls.QUERY
        if words[-1:] == ["("] and ahead.startswith(")"):
            begins = len(words) < 2 or words[0] in {"as", "from", "join", "in", "exists", ",", "all", "union"}
            return cls.QUERY if begins else cls.OTHER
        return cls.OTHER


@dataclass(frozen=True, slots=True)
class TemplateLiteral:
    """A string literal of a template's code, or the value of a variable of dbt.

    :param text: with the index of each character.
    :param is_value: whether it is the value of a variable.
    :param function: the function whose argument it is; empty where it is none.
    :param key: the name of the argument; empty where it has none.
    """

    text: SqlFragment
    function: str
    key: str
    is_value: bool = False

    @property
    def may_be_column(self) -> bool:
        """Whether it may name a column."""
        return self.key not in _NO_COLUMNS and self.function not in _NAMES_OTHERS


def literals_in(code: str, at: int, names: Variables) -> Iterator[TemplateLiteral]:
    """The string literals of an expression or a statement, and the variables that it gives to functions."""
    tokens = tokens_of(code, at)
    if tokens:
        yield from _literals(tokens, names)
    else:
        yield from (TemplateLiteral(text_value(token), "", "") for token in literals_of(code, at))


def _literals(tokens: list[Token], names: Variables) -> Iterator[TemplateLiteral]:
    open_brackets: list[tuple[str, str]] = [("", "")]
    key = ""
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else None
        following = tokens[number + 1].text if number + 1 < len(tokens) else ""
        function, outer = open_brackets[-1]
        if token.kind == "text":
            if following == ":" and function == "config":
                key = token.text
            else:
                yield TemplateLiteral(text_value(token), function, outer or key)
        elif token.text == "var" and following == "(" and function:
            end = next((at for at in range(number, len(tokens)) if tokens[at].text == ")"), len(tokens))
            for text in texts_in(value_of(tokens[number : end + 1], names)):
                yield TemplateLiteral(text, function, outer or key, is_value=True)
        elif token.kind != "mark":
            continue
        elif token.text in "([{":
            is_call = token.text == "(" and before is not None and before.kind == "name"
            called = before.text if is_call and before is not None else function
            open_brackets.append((called, "" if is_call else outer or key))
            key = ""
        elif token.text in ")]}":
            if len(open_brackets) > 1:
                open_brackets.pop()
            key = ""
        elif token.text == "=" and before is not None and before.kind == "name":
            key = before.text
        elif token.text == ",":
            key = ""


def bound_texts(tokens: list[Token], names: Variables) -> Iterator[SqlFragment]:
    """The texts of the variables and names in an expression, at the indexes where it uses them."""
    for number, token in enumerate(tokens):
        if token.kind != "name" or (number and tokens[number - 1].text == "."):
            continue
        following = tokens[number + 1].text if number + 1 < len(tokens) else ""
        value: Value = None
        if token.text == "var" and following == "(":
            end = next((at for at in range(number, len(tokens)) if tokens[at].text == ")"), len(tokens))
            value = value_of(tokens[number : end + 1], names)
        elif following not in {"(", "="}:
            value = names.get(token.text)
        for text in texts_in(value):
            # The string literals of a template have a range of indexes, and are searched as literals.
            is_literal = isinstance(text.indexes, range)
            if not is_literal and not text.text.startswith((f"{REF}.", f"{SOURCE}.", UNKNOWN)):
                yield SqlFragment(text.text, [token.at] * len(text.text))


def config_values(tokens: list[Token], names: Variables) -> Iterator[TemplateLiteral]:
    """The texts that names give to the keys of ``config``."""
    key = ""
    for number, token in enumerate(tokens):
        following = tokens[number + 1].text if number + 1 < len(tokens) else ""
        if token.kind == "name" and following == "=":
            key = token.text
        elif token.kind == "name" and token.text != "var":
            for text in bound_texts(tokens[number : number + 1], names):
                yield TemplateLiteral(text, "config", key, is_value=True)


def expression_sql(tokens: list[Token], names: Variables, place: Place) -> SqlFragment:
    """The SQL of an expression."""
    out = FragmentBuilder()
    if not tokens:
        out.put(UNKNOWN, 0)
        return out.built()
    at = tokens[0].at
    function = function_of(tokens)
    if function in _SILENT:
        return out.built()
    value = value_of(tokens, names)
    if isinstance(value, SqlFragment):
        return value
    if function == "star":
        out.put("*", at)
        return out.built()
    relations = list(_relations(tokens, names))
    if relations and place in (Place.RELATION, Place.QUERY):
        _relation(tokens, relations, place, names, out)
    elif place is not Place.WORD and (columns := list(_columns(tokens, names))):
        out.put(COLUMNS if function in _TAKES_COLUMNS else ARGUMENTS, at)
        _arguments(columns, out, at)
    elif relations:
        out.append(relations[0])
    else:
        out.put(UNKNOWN, at)
    return out.built()


def function_of(tokens: Sequence[Token]) -> str:
    """The function that an expression calls: `star` of ``dbt_utils.star(…)``."""
    at = 0
    while at + 2 < len(tokens) and tokens[at].kind == "name" and tokens[at + 1].text == ".":
        if tokens[at].text == "exceptions":
            return "exceptions"
        at += 2
    if tokens[at].kind == "name" and at + 1 < len(tokens) and tokens[at + 1].text == "(":
        return tokens[at].text
    return "do" if tokens[0].text == "do" else ""


def _relations(tokens: list[Token], names: Variables) -> Iterator[SqlFragment]:
    """The relations that an expression names."""
    for number, token in enumerate(tokens):
        following = tokens[number + 1].text if number + 1 < len(tokens) else ""
        before = tokens[number - 1].text if number else ""
        if token.kind == "name" and token.text in {"ref", "source"} and following == "(":
            end = next((at for at in range(number, len(tokens)) if tokens[at].text == ")"), len(tokens))
            value = value_of(tokens[number : end + 1], names)
            if isinstance(value, SqlFragment):
                yield value
        elif token.kind == "name" and before != "." and following not in {"(", "="}:
            bound = names.get(token.text)
            if isinstance(bound, SqlFragment) and bound.text.startswith((f"{REF}.", f"{SOURCE}.")):
                yield bound
        elif token.kind == "text" and before == "=" and tokens[number - 2].text in _NAMED:
            yield from [text_value(token)] if _NAME.fullmatch(token.text) is not None else ()


def _columns(tokens: list[Token], names: Variables) -> Iterator[SqlFragment]:
    """The columns and expressions among the texts of an expression."""
    for literal in _literals(tokens, names):
        text = literal.text
        if not literal.may_be_column or literal.key in _NAMED:
            continue
        if _LIST.fullmatch(text.text):
            for name in _NAME.finditer(text.text):
                if name[0].lower() not in _ORDER:
                    yield SqlFragment(name[0], text.indexes[name.start() : name.end()])
        elif _FUNCTION.fullmatch(text.text):
            yield text


def _arguments(columns: Sequence[SqlFragment], out: FragmentBuilder, at: int) -> None:
    out.put("(", at)
    for number, column in enumerate(columns):
        if number:
            out.put(", ", column.index(0))
        out.append(column)
    out.put(")", at)


def _relation(
    tokens: list[Token],
    relations: list[SqlFragment],
    place: Place,
    names: Variables,
    out: FragmentBuilder,
) -> None:
    """A relation that a macro makes of others, with the columns that are its other arguments."""
    at = tokens[0].at
    columns = list(_columns(tokens, names))
    if place is Place.RELATION and len(relations) == 1 and not columns:
        out.append(relations[0])
        return
    out.put("(" if place is Place.RELATION else "", at)
    for number, relation in enumerate(relations):
        out.put("select *" if not number else " union all select *", at)
        if columns:
            out.put(f", {ARGUMENTS}", at)
            _arguments(columns, out, at)
        out.put(" from ", at)
        out.append(relation)
    out.put(")" if place is Place.RELATION else "", at)
