"""What makes a text of `--where` or `--set` more or less than one expression, and where that begins.

Other problems are left to the parsers of sqlglot and DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from icemigrate.errors import MissingExtra, UsageError, extra_hint
from icemigrate.table_data.sql_quotes import LEXEME

if TYPE_CHECKING:
    from sqlglot import Token

CONDITION, NEW_VALUE = "condition", "new value"
"""What a text is, as messages name it."""
DUCKDB, SPARK = "duckdb", "spark"
"""The SQL that a text is in, as sqlglot names it."""
_EXAMPLES = {CONDITION: "id = 7", NEW_VALUE: "amount + 1"}
_STATEMENTS = frozenset({"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "DROP", "CREATE", "ALTER", "MERGE"})
_AFTER_STATEMENTS = frozenset({"VAR", "IDENTIFIER", "TABLE", "VIEW", "FROM", "INTO", "NUMBER", "STAR"})
"""Kinds of tokens that follow such a word in a statement, and do not follow a column of that name."""
_CLAUSES = frozenset(
    {"WHERE", "GROUP_BY", "HAVING", "ORDER_BY", "LIMIT", "QUALIFY", "UNION", "INTERSECT", "EXCEPT"}
)
"""Kinds of tokens that end an expression; other words of SQL are also names or parts of expressions."""
_CLOSED_BY = {"L_PAREN": "R_PAREN", "L_BRACKET": "R_BRACKET", "L_BRACE": "R_BRACE"}
_SPARK_LEXEME = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|['\"`]|/\*|.", re.DOTALL
)


def require_one_expression(text: str, what: str, noun: str, dialect: str = DUCKDB) -> None:
    """Check that a text has nothing after its first expression, and that its quotes and brackets are closed.

    :param what: names it in messages, such as ``--where``.
    :param noun: :data:`CONDITION` or :data:`NEW_VALUE`.
    :param dialect: :data:`DUCKDB` or :data:`SPARK`.
    :raises UsageError: it has more or less.
    :raises MissingExtra: sqlglot is not installed.
    """
    try:
        from sqlglot import tokenize
        from sqlglot.errors import TokenError
    except ImportError as error:
        raise MissingExtra("sqlglot is not installed", extra_hint("table")) from error
    try:
        tokens = tokenize(text, read=dialect)
    except TokenError as error:
        raise unclosed_error(text, what, dialect) from error
    if not tokens:
        raise UsageError(f"{what}: the {noun} is empty", f"write one, such as `{_EXAMPLES[noun]}`")
    if _begins_statement(tokens):
        raise UsageError(
            f"{_place(text, what, tokens[0].start)}: `{tokens[0].text}` begins a statement, and a {noun} is "
            "one expression",
            f"write an expression, such as `{_EXAMPLES[noun]}`",
        )
    opened: list[Token] = []
    for token in tokens:
        kind = token.token_type.name
        if kind in _CLOSED_BY:
            opened.append(token)
        elif kind in _CLOSED_BY.values():
            if not opened or _CLOSED_BY[opened.pop().token_type.name] != kind:
                place = _place(text, what, token.start)
                raise UsageError(f"{place}: `{token.text}` closes nothing", "remove it, or open it before")
        elif kind == "SEMICOLON" or not opened:
            hint = _hint(token, noun, dialect, is_first=token is tokens[0], is_last=token is tokens[-1])
            if hint is not None:
                place = _place(text, what, token.start)
                raise UsageError(
                    f"{place}: a {noun} is one expression, and `{token.text}` is not part of it", hint
                )
    if opened:
        place = _place(text, what, opened[-1].start)
        raise UsageError(f"{place}: `{opened[-1].text}` is not closed", "close it")


def _begins_statement(tokens: Sequence[Token]) -> bool:
    kinds = [token.token_type.name for token in tokens[:2]]
    return len(kinds) > 1 and kinds[0] in _STATEMENTS and kinds[1] in _AFTER_STATEMENTS


def _hint(token: Token, noun: str, dialect: str, *, is_first: bool, is_last: bool) -> str | None:
    """What helps where a token separates expressions or begins a clause of a statement; else ``None``."""
    kind = token.token_type.name
    if kind == "SEMICOLON":
        return "remove it" if is_last else "remove it and the text after it"
    if kind == "COMMA":
        return (
            "join conditions by `AND` or `OR`" if noun == CONDITION else "repeat `--set` for another column"
        )
    if kind not in _CLAUSES:
        return None
    return _hint_of_first_word(token, noun, dialect) if is_first else "remove it and the text after it"


def _hint_of_first_word(token: Token, noun: str, dialect: str) -> str:
    """What helps where a text begins with a word that begins a clause."""
    kind = token.token_type.name
    if kind == "WHERE" and noun == CONDITION:
        return "leave it out: the text is what follows `WHERE`"
    if kind in ("GROUP_BY", "ORDER_BY"):
        return f"write an expression, such as `{_EXAMPLES[noun]}`"
    if dialect == SPARK:
        return f"put a column of that name in backticks: `{token.text}`"
    return f'put a column of that name in double quotes: `"{token.text}"`'


def unclosed_error(text: str, what: str, dialect: str = DUCKDB) -> UsageError:
    """The error of a SQL text with a quote or a comment that does not end.

    :param what: names it in messages.
    :param dialect: :data:`DUCKDB` or :data:`SPARK`.
    """
    for found in (LEXEME if dialect == DUCKDB else _SPARK_LEXEME).finditer(text):
        if found[0] in ("'", '"', "`", "/*"):
            kind = "comment" if found[0] == "/*" else "quote"
            return UsageError(
                f"{_place(text, what, found.start())}: the {kind} that begins here is not closed", "close it"
            )
    return UsageError(f"{what}: a quote or a comment is not closed", "close it")


def _place(text: str, what: str, at: int) -> str:
    """A place in the text, such as ``--where:1:5``."""
    before = text[:at]
    return f"{what}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
