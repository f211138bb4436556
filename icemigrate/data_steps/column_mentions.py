"""Whether an SQL expression clearly reads a column, without parsing it; unclear cases do not count."""

from __future__ import annotations

import re

from icemigrate.data_steps.sql_syntax_checks import without_texts_and_comments
from icemigrate.iceberg.names import FieldPath

_OTHER_NAMES = re.compile(r"->|\b(?:select|as|interval|extract)\b", re.I)
"""Syntax with names of its own, or words that are not names: a lambda, a subquery, a type, a unit."""

_SYNTAX = re.compile(
    r"all|and|any|between|by|case|cross|current_(date|time|timestamp|user)|distinct|else|end|escape|exists|false"
    r"|filter|following|for|from|group|having|i?like|in|is|not|nulls?|on|or|order|over|partition|preceding"
    r"|range|rlike|rows?|some|then|true|unbounded|unknown|when|where|window|with",
    re.I,
)
"""Keywords of expressions: a column with such a name counts only in backticks."""


def is_column_mentioned(expression: str, path: FieldPath) -> bool:
    """Whether an expression contains the path of a column or a field as a word, in any case.

    After a dot, the word is a field of something else; before a bracket or a quote, a function or a type.
    """
    text = without_texts_and_comments(expression)
    if re.search(rf"(?<![.]){_DOT.join(map(_quoted, path))}", text, re.I):
        return True
    if _SYNTAX.fullmatch(path[0]) or _OTHER_NAMES.search(text):
        return False
    parts = _DOT.join(f"(?:{re.escape(name)}|{_quoted(name)})" for name in path)
    return re.search(rf"(?<![\w.`@$]){parts}(?![\w`]|\s*[('])", text, re.I) is not None


_DOT = r"\s*[.]\s*"


def _quoted(name: str) -> str:
    """A name in backticks, as a pattern."""
    return f"`{re.escape(name.replace('`', '``'))}`"


_WORD = re.compile(r"\s*([a-z]\w*)\s*", re.I)
_VALUES = re.compile(
    r"null|true|false|default|current_(catalog|database|date|schema|time|timestamp|timezone|user)|localtimestamp"
    r"|(session_)?user",
    re.I,
)
"""Words that are values."""


def bare_word(expression: str) -> str | None:
    """The only word of an expression, if it can only be a column's name; otherwise ``None``."""
    word = _WORD.fullmatch(expression)
    return None if word is None or _VALUES.fullmatch(word[1]) else word[1]
