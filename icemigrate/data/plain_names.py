"""Whether an SQL expression plainly reads a column; nothing is parsed, and what is not plain is let be."""

from __future__ import annotations

import re

from icemigrate.data.plain_sql import COMMENT, TEXT
from icemigrate.model.names import Path

_NOT_READ = re.compile(f"{TEXT}|{COMMENT}", re.S)
_OTHER_NAMES = re.compile(r"->|\b(?:select|as|interval|extract)\b", re.I)
"""What brings names of its own, or words that are no names: a lambda, a subquery, a type, a unit."""

_SYNTAX = re.compile(
    r"all|and|any|between|by|case|cross|current_(date|time|timestamp|user)|distinct|else|end|escape|exists|false"
    r"|filter|following|for|from|group|having|i?like|in|is|not|nulls?|on|or|order|over|partition|preceding"
    r"|range|rlike|rows?|some|then|true|unbounded|unknown|when|where|window|with",
    re.I,
)
"""Words of expressions: a column that is called so is only plainly meant in backticks."""


def plainly_reads(expression: str, path: Path) -> bool:
    """Whether a column's name, or a field's with all that it stands in, stands there as a word of its own, in
    whichever case.

    Behind a dot stands a field of something else, before a bracket or a quote a function or a type.
    """
    text = _NOT_READ.sub("''", expression)
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
"""Words that stand for a value by themselves."""


def bare_word(expression: str) -> str | None:
    """The one word that an expression consists of, and that can only be a column's name; else ``None``."""
    word = _WORD.fullmatch(expression)
    return None if word is None or _VALUES.fullmatch(word[1]) else word[1]
