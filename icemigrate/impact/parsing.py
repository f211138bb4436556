"""SQL text → syntax trees, a statement at a time, so that one that cannot be read hides none of the others.

The only module that imports SQLGlot when it is used.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.impact.text import Fragment

_COMMAND = "Command"
MOST_TOKENS = 100_000
"""How many tokens a file of SQL may have: each takes some ten microseconds and half a kilobyte."""


class Statement(Frozen):
    """A statement of a fragment.

    :param tree: ``None`` where it cannot be read.
    :param text: the statement itself.
    :param why: why it cannot be read, and ``at`` where in the file.
    """

    fragment: Fragment
    text: str
    tree: Any
    why: str = ""
    at: int = 0


def is_there() -> bool:
    """Whether SQLGlot is installed."""
    return importlib.util.find_spec("sqlglot") is not None


def dialects() -> frozenset[str]:
    """The dialects that SQLGlot reads."""
    from sqlglot.dialects.dialect import Dialects

    return frozenset(str(one.value) for one in Dialects if one.value)


def statements(fragment: Fragment, dialect: str) -> Iterator[Statement]:
    """The statements of a fragment; what SQLGlot knows by its first word alone cannot be read."""
    from sqlglot import Dialect, TokenType
    from sqlglot.errors import SqlglotError

    # It writes warnings of its own about what it does not know.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    reader = Dialect.get_or_raise(dialect)
    try:
        tokens = reader.tokenize(fragment.text)
    except (SqlglotError, ValueError, RecursionError) as error:
        yield Statement(fragment, fragment.text, None, _said(error), fragment.index(0))
        return
    if len(tokens) > MOST_TOKENS:
        why = f"it has {len(tokens):,} words and signs, and at most {MOST_TOKENS:,} are read"
        yield Statement(fragment, fragment.text[:100], None, why, fragment.index(0))
        return
    chunk: list[Any] = []
    for token in [*tokens, None]:
        if token is not None and token.token_type is not TokenType.SEMICOLON:
            chunk.append(token)
        elif chunk:
            yield _statement(fragment, chunk, reader)
            chunk = []


def _statement(fragment: Fragment, tokens: list[Any], reader: Any) -> Statement:
    from sqlglot.errors import ParseError, SqlglotError

    first, last = tokens[0].start, tokens[-1].end
    text = fragment.text[first : last + 1]
    at = fragment.index(first)
    try:
        trees = reader.parser().parse(tokens, fragment.text)
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        if found.get("line"):
            at = fragment.index(_index(fragment.text, found["line"], found["col"], found["highlight"] or ""))
        return Statement(fragment, text, None, str(found.get("description") or "it is no SQL"), at)
    except (SqlglotError, ValueError, RecursionError) as error:
        return Statement(fragment, text, None, _said(error), at)
    tree = trees[0] if trees else None
    if tree is None or type(tree).__name__ == _COMMAND:
        return Statement(fragment, text, None, f"`{text.split()[0]}` is not known to the parser", at)
    return Statement(fragment, text, tree, "", at)


def _index(text: str, line: int, column: int, highlight: str) -> int:
    """Where a mistake begins; SQLGlot tells the column of the last character of a word."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return max(start, start + column - max(len(highlight), 1))


def _said(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error).partition("\n")[0].partition(". Line")[0] or "it is no SQL"
