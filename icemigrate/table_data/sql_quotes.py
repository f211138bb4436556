"""Hints for SQL that lacks quotes: around a name that is not a plain word, or twice inside a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from icemigrate.errors import UsageError
from icemigrate.redaction import redact_secrets

LEXEME = re.compile(
    r"'(?:[^']|'')*'(?!')|\"(?:[^\"]|\"\")*\"(?!\")|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|['\"]|/\*|.",
    re.DOTALL,
)
"""A text, a name in quotes, a comment, a quote or a comment that does not end, or another character."""
_PLAIN = re.compile(r"[^\W\d]\w*")
_WORD = re.compile(r"\w+")
_AFTER_A_TEXT = frozenset(
    {"and", "as", "between", "else", "end", "except", "from", "group", "ilike", "in", "intersect", "is"}
    | {"limit", "like", "not", "or", "order", "then", "union", "when"}
)
"""Words that may follow a text without a space."""
_LONGEST = 60


@contextmanager
def quote_hints(text: str, columns: Iterable[str] = ()) -> Iterator[None]:
    """A block in which an error of some SQL gets the hint of :func:`quote_hint`, if there is one.

    :param text: the SQL.
    :param columns: the names that it may use.
    :raises UsageError: as it is raised within.
    """
    try:
        yield
    except UsageError as error:
        hint = quote_hint(text, tuple(columns))
        if hint is not None:
            error.hint = redact_secrets(hint)
        raise


def quote_hint(text: str, columns: Sequence[str] = ()) -> str | None:
    """What to quote in some SQL that is not valid; ``None`` where nothing lacks quotes."""
    return _inner_quote(text) or _unquoted_name(text, columns)


def _inner_quote(text: str) -> str | None:
    """The hint where a text or a name is followed by a word directly: `'O'Hara'`."""
    for found in LEXEME.finditer(text):
        quote, content = found[0][0], found[0][1:-1]
        after = _WORD.match(text, found.end())
        if quote not in "'\"" or len(found[0]) < 2 or after is None:
            continue
        end = text.find(quote, found.end())
        if end < 0 or after[0].lower() in _AFTER_A_TEXT:
            continue
        meant = f"{quote}{content.rstrip(chr(92))}{quote * 2}{text[found.end() : end]}{quote}"
        noun = "text" if quote == "'" else "name"
        example = f": {meant}" if len(meant) <= _LONGEST else ""
        return f"write a quote inside a {noun} twice{example}"
    return None


def _unquoted_name(text: str, columns: Sequence[str]) -> str | None:
    """The hint where a text has the name of a column that SQL reads otherwise, without quotes around it."""
    bare = LEXEME.sub(lambda found: found[0] if len(found[0]) == 1 else "\0" * len(found[0]), text)
    for name in sorted(columns, key=len, reverse=True):
        words = r"\s+".join(map(re.escape, name.split()))
        if not _WORD.search(name) or not re.search(rf"(?<![\w\0]){words}(?![\w\0])", bare, re.IGNORECASE):
            continue
        # A keyword without quotes breaks the syntax; in valid SQL it is one, such as `END` of a `CASE`.
        if _PLAIN.fullmatch(name) is None or (_is_keyword(name) and not _is_valid(text)):
            quoted = name.replace('"', '""')
            return (
                f'did you mean `"{quoted}"`? a name that is a keyword or not a plain word is in double quotes'
            )
    return None


def _is_keyword(name: str) -> bool:
    """Whether DuckDB reads a word as something else than a name."""
    return not _parses(f"SELECT {name} > 1")


def _is_valid(text: str) -> bool:
    """Whether the syntax of a statement or an expression is valid."""
    return _parses(text) or _parses(f"SELECT (\n{text}\n)")


def _parses(sql: str) -> bool:
    import duckdb

    from icemigrate.table_data.duckdb_statements import open_alone

    with open_alone() as connection:
        try:
            connection.extract_statements(sql)
        except duckdb.Error:
            return False
    return True
