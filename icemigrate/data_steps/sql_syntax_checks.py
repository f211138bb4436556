"""Checks for text that is clearly not an expression or a query of Spark SQL; Spark checks the rest.

An expression becomes part of a statement.  One that ends early, or hides what follows it, would change the
rest of the statement: ``1 -- half`` removes the condition after it.
"""

from __future__ import annotations

import re
from typing import TypeAlias

SqlFault: TypeAlias = "tuple[str, str]"
"""What is wrong, as a verb phrase whose subject is the text, and what to write instead."""

SQL_COMMENT_PATTERN = r"--[^\n]*|/\*.*?\*/"
"""Matched together with strings: a comment may contain a quote, and a string the start of a comment."""
SQL_TEXT_PATTERN = r"""(?i:\br)(?:'[^']*'|"[^"]*")|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
"""In a raw string (``r'…'``) a backslash escapes nothing."""
_NOT_CODE = re.compile(f"{SQL_TEXT_PATTERN}|{SQL_COMMENT_PATTERN}", re.S)
_NOT_BARE = re.compile(f"(?P<comment>{SQL_COMMENT_PATTERN})|{SQL_TEXT_PATTERN}|`[^`]*`", re.S)
_PAIRS = {")": "(", "]": "["}
_AGGREGATE = re.compile(
    r"\s*select\s+(?:count|count_if|sum|min|max|avg)\s*\([^()]*\)(?:\s+(?:as\s+)?\w+)?\s+from\b",
    re.IGNORECASE,
)
_MORE_THAN_AGGREGATE = re.compile(
    r"\b(?:group\s+by|having|over|union|intersect|except|minus|limit|offset|qualify)\b|\|>", re.IGNORECASE
)
_QUERIES = ("select", "with", "values", "table", "from")


def without_texts_and_comments(sql: str) -> str:
    """SQL in which each string literal and each comment is an empty literal."""
    return _NOT_CODE.sub("''", sql)


def expression_fault(text: str) -> SqlFault | None:
    """What is wrong with an expression, judged by its punctuation; ``None`` if nothing is."""
    if not text.strip():
        return "is empty", "write an SQL expression, or `null`"
    bare = _NOT_BARE.sub(lambda found: "--" if found["comment"] else "x", text)
    if fault := _of_signs(bare):
        return fault
    if "--" in bare or "/*" in bare:
        return "contains a comment, which could hide the rest of the statement", "use a YAML comment (`#`)"
    return _of_brackets(bare, is_one=True)


def query_fault(text: str) -> SqlFault | None:
    """What is wrong with a query, judged by its punctuation and first word; ``None`` if nothing is."""
    bare = _NOT_BARE.sub(lambda found: " " if found["comment"] else "x", text)
    if fault := _of_signs(bare):
        return fault
    first = re.match(r"[\s(]*(\w*)", bare)
    assert first is not None, "the pattern matches the empty string"
    if first[1].lower() not in _QUERIES:
        start = f"begins with `{first[1]}`" if first[1] else "is empty"
        return f"{start}, but a check must be a query", "write a query: `select count(*) from {table}`"
    return _of_brackets(bare, is_one=False)


def is_one_aggregate(text: str) -> bool:
    """Whether a query is one aggregate over all rows, such as a count, which always returns one row."""
    bare = _NOT_BARE.sub(lambda found: " " if found["comment"] else "x", text)
    return _AGGREGATE.match(bare) is not None and _MORE_THAN_AGGREGATE.search(bare) is None


def _of_signs(bare: str) -> SqlFault | None:
    """An unclosed quote, or a second statement."""
    if quote := re.search(r"['\"`]", bare):
        return f"has an unclosed {quote[0]}", "close it; write it twice inside a string"
    if ";" in bare:
        return "contains a `;`, but is part of one statement", "remove the `;`"
    return None


def _of_brackets(bare: str, is_one: bool) -> SqlFault | None:
    """Unbalanced brackets, and a comma or a condition outside of brackets.

    :param is_one: whether the text must be one expression.
    """
    depth: list[str] = []
    for sign in re.findall(r"[()\[\],]|\bwhere\b", bare, re.I):
        if sign in _PAIRS.values():
            depth.append(sign)
        elif sign in _PAIRS:
            if not depth or depth.pop() != _PAIRS[sign]:
                return f"has an unopened `{sign}`", "remove it, or open it"
        elif is_one and not depth and sign == ",":
            return (
                "is more than one expression: it has a comma outside of brackets",
                "write one for each column",
            )
        elif is_one and not depth:
            return "contains a condition", "write the condition under `where`"
    if depth:
        return f"has an unclosed `{depth[-1]}`", "close it, or remove it"
    return None
