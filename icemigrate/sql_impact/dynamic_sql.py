"""Uses in string literals of SQL that a script runs: ``DECLARE q STRING DEFAULT 'select …'``.

A literal that is a whole statement is read as one.  A part of a statement may use every column that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set

from icemigrate.iceberg.names import TableName
from icemigrate.sql_impact.ddl_uses import Word, find_unresolved_uses
from icemigrate.sql_impact.python_sql import looks_like_sql
from icemigrate.sql_impact.query_uses import QueryReader
from icemigrate.sql_impact.relations import Relation
from icemigrate.sql_impact.sql_parser import ParsedStatement, parse_statements
from icemigrate.sql_impact.sql_source import SqlFragment
from icemigrate.sql_impact.statement_uses import read_statement
from icemigrate.sql_impact.template_uses import find_word_uses

_LITERAL = re.compile(r"'((?:[^'\\]|\\.|'')*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_RUN = frozenset({"execute", "exec", "prepare"})
_HOLDING = frozenset({"declare", "set"})
"""Statements that keep a text under a name."""


def runs_texts(statements: Iterable[ParsedStatement]) -> bool:
    """Whether one of the statements runs a text."""
    return any(one.words and one.words[0].text.lower() in _RUN for one in statements)


def literals_in_sql(statement: ParsedStatement) -> Iterator[SqlFragment]:
    """The string literals of a statement, by their indexes in its fragment."""
    first = max(statement.fragment.text.find(statement.text), 0)
    for found in _LITERAL.finditer(statement.text):
        group = 1 if found[1] is not None else 2
        start = first + found.start(group)
        yield SqlFragment(found[group], range(start, start + len(found[group])))


def words_in_literals(statements: Iterable[ParsedStatement]) -> set[str]:
    """The words of all string literals of statements, in lower case."""
    texts = (literal.text.lower() for one in statements for literal in literals_in_sql(one))
    return {word for text in texts for word in re.findall(r"\w+", text)}


def find_run_uses(
    reader: QueryReader, statement: ParsedStatement, dialect: str, named: Sequence[Relation] | None
) -> None:
    """Find the possible uses in the string literals of a statement.

    :param named: the tables that the literals of the script name; ``None`` where it runs no text itself.
    """
    if named is None and (statement.tree is None or statement.tree.key not in _HOLDING):
        return
    for literal in literals_in_sql(statement):
        if looks_like_sql(literal.text):
            parsed = list(parse_statements(literal, dialect))
            if all(one.tree is not None for one in parsed):
                for one in parsed:
                    _take_uses(reader, one, literal, {t for relation in named or () for t in relation.tables})
                continue
        find_word_uses(reader, literal, named or ())


def _take_uses(
    reader: QueryReader, statement: ParsedStatement, literal: SqlFragment, tables: Set[TableName]
) -> None:
    inner = reader.quiet()
    read_statement(inner, statement.tree)
    find_unresolved_uses(inner, tables)
    for (at, affected), use in inner.uses.items():
        reader.use(Word(use.written, literal.index(at)), affected, is_sure=False, via=use.via)
