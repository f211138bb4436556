"""Whether an SQL expression plainly reads a column; nothing is parsed, and what is not plain is let be."""

from __future__ import annotations

import re

from icemigrate.data.plain_sql import COMMENT, TEXT

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


def plainly_reads(expression: str, column: str) -> bool:
    """Whether a column's name stands there as a word of its own, in whichever case.

    Behind a dot stands a field of something else, before a bracket or a quote a function or a type.
    """
    text = _NOT_READ.sub("''", expression)
    quoted = f"`{re.escape(column.replace('`', '``'))}`"
    if re.search(rf"(?<!\.){quoted}", text, re.I):
        return True
    if _SYNTAX.fullmatch(column) or _OTHER_NAMES.search(text):
        return False
    return re.search(rf"(?<![\w.`@$]){re.escape(column)}(?![\w`]|\s*[('])", text, re.I) is not None


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
