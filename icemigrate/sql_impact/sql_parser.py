"""Parses SQL text one statement at a time, so that an unreadable statement hides no other.

The only module that imports SQLGlot; it does so on first use.
"""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.sql_impact.sql_source import SqlFragment

_COMMAND = "Command"
_PIECE = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\w+|[^\w\s]")
_STRAY = re.compile(r"[^\w\s -~]")
"""A character that SQL has in literals, quoted names and comments alone; SQLGlot takes it into names."""
_APART_OR_STRAY = re.compile(
    r"'(?:[^'\\]|\\.)*(?:'|\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\Z)|`[^`]*(?:`|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|[^\w\s -~]",
    re.DOTALL,
)
MOST_TOKENS = 100_000
"""How many tokens a file of SQL may have: each takes some ten microseconds and half a kilobyte."""

MOST_NESTED_STRUCTS = 10
"""How deeply calls of ``struct`` may nest: SQLGlot takes twice as long for each level."""
_FAULTS = (ValueError, RecursionError, LookupError, TypeError, AttributeError)
"""What SQLGlot raises for text that it does not expect, beside its own errors."""
MOST_JOINS = 300
"""How many tables a query may join: each name in it is looked for in all of them."""


class SqlWord(Frozen):
    """A token of a statement.

    :param start: its index in the fragment; of a string literal, of its first character behind the quote.
    :param is_text: whether it is a string literal.
    """

    text: str
    start: int
    is_text: bool


class ParsedStatement(Frozen):
    """A statement of a fragment.

    :param tree: ``None`` where it cannot be read.
    :param text: the statement itself.
    :param why: why it cannot be read, and ``at`` where in the file.
    :param is_sql: whether it is SQL; otherwise a whole file, or a cell of a notebook.
    :param words: the tokens of a statement that the parser knows by its first word alone; it has no tree.
    """

    fragment: SqlFragment
    text: str
    tree: Any
    why: str = ""
    at: int = 0
    words: tuple[SqlWord, ...] = ()
    is_sql: bool = True


def is_sqlglot_installed() -> bool:
    """Whether SQLGlot is installed."""
    return importlib.util.find_spec("sqlglot") is not None


def sql_dialects() -> frozenset[str]:
    """The dialects that SQLGlot reads."""
    from sqlglot.dialects.dialect import Dialects

    return frozenset(str(one.value) for one in Dialects if one.value)


def view_definition(name: Sequence[str], query: str, dialect: str) -> str:
    """The statement that defines a view."""
    from sqlglot import exp

    parts = (exp.to_identifier(part, quoted=True).sql(dialect=dialect) for part in name)
    return f"CREATE VIEW {'.'.join(parts)} AS {query}"


def table_names(query: str, dialect: str) -> frozenset[tuple[str, ...]]:
    """The names of the tables and views that a query reads, in lower case; none where it cannot be parsed."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        tree = parse_one(query, dialect=dialect)
    except (SqlglotError, ValueError, RecursionError):
        return frozenset()
    subqueries = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    names = (tuple(part.name.lower() for part in table.parts) for table in tree.find_all(exp.Table))
    return frozenset(name for name in names if name and (len(name) > 1 or name[0] not in subqueries))


def parse_statements(fragment: SqlFragment, dialect: str) -> Iterator[ParsedStatement]:
    """The statements of a fragment; what SQLGlot knows by its first word alone has its words, and no tree."""
    from sqlglot import Dialect, TokenType
    from sqlglot.errors import SqlglotError

    # It logs warnings of its own about statements that it does not know.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    reader = Dialect.get_or_raise(dialect)
    if _STRAY.search(fragment.text) is not None:
        fragment, stray = _without_stray(fragment)
        if stray is not None:
            why = f"the character U+{ord(stray[0]):04X} is not SQL"
            yield ParsedStatement(fragment, fragment.text, None, why, fragment.index(stray.start()))
    try:
        tokens = reader.tokenize(fragment.text)
    except (SqlglotError, *_FAULTS) as error:
        yield ParsedStatement(fragment, fragment.text, None, _error_text(error), fragment.index(0))
        return
    if len(tokens) > MOST_TOKENS:
        why = f"it has {len(tokens):,} tokens; the limit is {MOST_TOKENS:,}"
        yield ParsedStatement(fragment, fragment.text, None, why, fragment.index(0))
        return
    chunk: list[Any] = []
    for token in [*tokens, None]:
        if token is not None and token.token_type is not TokenType.SEMICOLON:
            chunk.append(token)
        elif chunk:
            yield _statement(fragment, chunk, reader)
            chunk = []


def _without_stray(fragment: SqlFragment) -> tuple[SqlFragment, re.Match[str] | None]:
    """The fragment with blanks for its stray characters, and the first of them that is inside of a word."""
    text, inside = fragment.text, list[re.Match[str]]()

    def blank(found: re.Match[str]) -> str:
        if len(found[0]) > 1 or _STRAY.match(found[0]) is None:
            return found[0]
        around = text[max(found.start() - 1, 0) : found.start()], text[found.end() : found.end() + 1]
        if all(one.isalnum() or one == "_" for one in around):
            inside.append(found)
        return " "

    return SqlFragment(_APART_OR_STRAY.sub(blank, text), fragment.indexes), next(iter(inside), None)


def _statement(fragment: SqlFragment, tokens: list[Any], reader: Any) -> ParsedStatement:
    from sqlglot.errors import ParseError, SqlglotError

    first, last = tokens[0].start, tokens[-1].end
    text = fragment.text[first : last + 1]
    at = fragment.index(first)
    if _nested_structs(tokens) > MOST_NESTED_STRUCTS:
        why = f"it nests calls of `struct` more than {MOST_NESTED_STRUCTS} times"
        return ParsedStatement(fragment, text, None, why, at)
    try:
        trees = reader.parser().parse(tokens, fragment.text)
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        if found.get("line"):
            at = fragment.index(_index(fragment.text, found["line"], found["col"], found["highlight"] or ""))
        return ParsedStatement(fragment, text, None, str(found.get("description") or "it is not SQL"), at)
    except (SqlglotError, *_FAULTS) as error:
        return ParsedStatement(fragment, text, None, _error_text(error), at)
    tree = trees[0] if trees else None
    if tree is not None and type(tree).__name__ == _COMMAND:
        return ParsedStatement(fragment, text, None, "", at, tuple(_words(fragment, tokens)))
    if tree is None:
        return ParsedStatement(fragment, text, None, "it is not SQL", at)
    joins = max((len(one.args.get("joins") or ()) for one in tree.walk()), default=0)
    if joins > MOST_JOINS:
        why = f"it joins {joins:,} tables; the limit is {MOST_JOINS:,}"
        return ParsedStatement(fragment, text, None, why, at)
    return ParsedStatement(fragment, text, tree, "", at)


def _nested_structs(tokens: Iterable[Any]) -> int:
    """How deeply calls of ``struct`` nest."""
    deepest = depth = 0
    calls, before = list[bool](), ""
    for token in tokens:
        if token.text == "(":
            calls.append(before == "struct")
            depth += calls[-1]
            deepest = max(deepest, depth)
        elif token.text == ")" and calls:
            depth -= calls.pop()
        before = token.text.lower()
    return deepest


def _words(fragment: SqlFragment, tokens: list[Any]) -> Iterator[SqlWord]:
    from sqlglot import TokenType

    for token in tokens:
        is_text = token.token_type is TokenType.STRING
        start = token.end + 1 - len(token.text)
        if not is_text or fragment.text[start : token.end + 1] != token.text:
            start = token.start + (token.end - token.start + 1 > len(token.text))
            yield SqlWord(token.text, start, is_text)
            continue
        # After some commands the tokenizer makes one token of all the rest.
        for found in _PIECE.finditer(token.text):
            is_literal = found[0][0] in "'\""
            text, shift = (found[0][1:-1], 1) if is_literal or found[0][0] == "`" else (found[0], 0)
            yield SqlWord(text, start + found.start() + shift, is_literal)


def _index(text: str, line: int, column: int, highlight: str) -> int:
    """The index where an error begins; SQLGlot reports the column of the last character of a word."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return max(start, start + column - max(len(highlight), 1))


def _error_text(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, LookupError | TypeError | AttributeError):
        return "it is not SQL that can be parsed"
    return str(error).partition("\n")[0].partition(". Line")[0] or "it is not SQL"
