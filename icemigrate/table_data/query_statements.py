"""The text of a query: which tables it reads at which point, and that it does nothing but read.

sqlglot finds the tables; their names are replaced in the text, and the rest of it goes to DuckDB as it is
written.  DuckDB's own parser then decides that the text only reads these tables
(:mod:`~icemigrate.table_data.duckdb_statements`), and DuckDB's configuration keeps a query away from files
(:mod:`~icemigrate.table_data.duckdb_session`); what is refused here gets a clear error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from icemigrate.errors import MissingExtra, UsageError, extra_hint
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.table_data.duckdb_session import quoted_identifier
from icemigrate.table_data.duckdb_statements import (
    open_alone,
    require_expression,
    require_pure_function,
    require_table_function,
)
from icemigrate.table_data.one_expression import CONDITION, require_one_expression, unclosed_error
from icemigrate.table_data.sql_positions import EditedSql, syntax_problem
from icemigrate.table_data.table_points import CURRENT, ReadPoint, parse_timestamp

if TYPE_CHECKING:
    from sqlglot import Token, exp


class TableUse(Frozen):
    """A table in a query.

    :param name: its declared name.
    :param point: what is read of it.
    :param start: where its text begins.
    :param end: where its text ends, with the time that is given.
    :param alias: the name that columns are qualified with, where the query gives none.
    """

    name: TableName
    point: ReadPoint
    start: int
    end: int
    alias: str | None


class Query(Frozen):
    """A query that only reads.

    :param text: as the user wrote it.
    :param uses: the tables that it reads, in the order of the text.
    :param qualifiers: where namespaces in front of columns begin and end, such as ``sales.`` in
        ``sales.orders.id``.
    """

    text: str
    uses: tuple[TableUse, ...]
    qualifiers: tuple[tuple[int, int], ...] = ()

    def with_views(self, views: Sequence[str]) -> EditedSql:
        """The statement for DuckDB.

        :param views: the view that has the rows of each use.
        """
        edits = [(start, end, "") for start, end in self.qualifiers]
        for use, view in zip(self.uses, views, strict=True):
            alias = "" if use.alias is None else f" AS {quoted_identifier(use.alias)}"
            edits.append((use.start, use.end, quoted_identifier(view) + alias))
        return EditedSql(self.text, tuple(sorted(edits)))


def parse_query(text: str) -> Query:
    """The tables of one statement that reads.

    :raises UsageError: it is no valid SQL, several statements, or does more than read tables.
    :raises MissingExtra: sqlglot is not installed.
    """
    tree = _only_statement(text)
    _refuse_other_than_reads(tree, text)
    uses = tuple(sorted(_uses(tree, text), key=lambda use: use.start))
    return Query(text, uses, tuple(_qualifiers(tree, uses)))


def check_condition(text: str) -> None:
    """Check that a text is one condition, which may follow ``WHERE``.

    :raises UsageError: it is not.
    """
    require_one_expression(text, "--where", CONDITION)
    from sqlglot import exp

    before, after = "SELECT 1 WHERE (\n", "\n)"
    try:
        tree = _only_statement(f"{before}{text}{after}", "--where", 1)
        is_one = isinstance(tree, exp.Select) and not {k for k, v in tree.args.items() if v} - {
            "expressions",
            "where",
        }
        is_one = is_one and isinstance(tree.args["where"].this, exp.Paren)
    except _SeveralStatements:
        is_one = False
    if not is_one:
        raise UsageError(
            "`--where` takes one condition", "write it as after `WHERE`, such as `id = 1 AND name IS NULL`"
        )
    # DuckDB has no `FOR VERSION AS OF`, so it reads the condition with a view for each table.
    read = parse_query(f"{before}{text}{after}")
    views = [f"icemigrate_{number}" for number, _ in enumerate(read.uses, 1)]
    own = read.with_views(views).sql[len(before) : -len(after)]
    with open_alone() as connection:
        require_expression(connection, own, "--where", has_subqueries=True)


class _SeveralStatements(UsageError):
    """The text has more than one statement, or none."""


def _only_statement(text: str, where: str = "the query", skipped_lines: int = 0) -> exp.Expression:
    try:
        import sqlglot
        from sqlglot.errors import ParseError, TokenError
    except ImportError as error:
        raise MissingExtra("sqlglot is not installed", extra_hint("table")) from error
    log = logging.getLogger("sqlglot")
    before, log.disabled = log.disabled, True  # statements that it passes over are refused below
    try:
        found: list[Any] = [tree for tree in sqlglot.parse(text, read="duckdb") if tree is not None]
    except ParseError as error:
        place, reason = syntax_problem(error, skipped_lines)
        raise UsageError(
            f"{where}:{place}: {reason}",
            "correct the SQL, which is DuckDB's, with `FOR TIMESTAMP AS OF` or `FOR VERSION AS OF`",
        ) from error
    except TokenError as error:
        raise unclosed_error(text, where) from error
    except RecursionError as error:
        raise UsageError(f"{where} cannot be read: it is nested too deeply", "correct the SQL") from error
    finally:
        log.disabled = before
    if len(found) != 1:
        raise _SeveralStatements(
            "there is no statement" if not found else f"there are {len(found)} statements",
            "give one SELECT",
        )
    tree: exp.Expression = found[0]
    return tree


def _refuse_other_than_reads(tree: exp.Expression, text: str) -> None:
    from sqlglot import exp

    hint = "write a SELECT on tables of the catalog; `icemigrate shell` runs other statements in Spark"
    if not isinstance(tree, (exp.Query, exp.Values)):
        word = text.split(None, 1)[0].upper()
        raise UsageError(f"`{word}` is not a query: `table sql` only reads tables", hint)
    writes = (exp.DML, exp.DDL, exp.Command, exp.Copy, exp.Into, exp.Attach, exp.Set, exp.Pragma)
    for node in tree.walk():
        if isinstance(node, exp.Query):
            if isinstance(node, exp.Select) and node.args.get("into"):
                raise UsageError("`SELECT INTO` writes a table: `table sql` only reads tables", hint)
        elif isinstance(node, writes):
            raise UsageError(f"`{node.key.upper()}` is not a query: `table sql` only reads tables", hint)
        elif isinstance(node, exp.Func):
            require_pure_function(_function_name(node))


def _function_name(node: exp.Expression | exp.Func) -> str:
    from sqlglot import exp

    name = node.name if isinstance(node, exp.Anonymous) else getattr(node, "sql_name", lambda: node.key)()
    return str(name).lower()


def _uses(tree: exp.Expression, text: str) -> Iterator[TableUse]:
    import sqlglot
    from sqlglot import exp

    tokens = sqlglot.tokenize(text, read="duckdb")
    common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for lateral in tree.find_all(exp.Lateral):
        if not isinstance(lateral.this, exp.Subquery):
            require_table_function(_function_name(lateral.this))
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, (exp.Identifier, exp.Dot)):
            require_table_function(_function_name(table.this))
            continue
        parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
        names = [part.name for part in parts]
        version = table.args.get("version")
        if len(names) == 1:
            if names[0].lower() in common and version is None:
                continue
            raise UsageError(
                f"`{names[0]}` has no namespace"
                if names[0].lower() not in common
                else f"`{names[0]}` is a name of `WITH`, which has no earlier states",
                "write the table with its namespace, such as `sales.orders`; "
                "a query reads tables of the catalog, no files",
            )
        if table.args.get("when") is not None:
            raise UsageError(
                f"`{'.'.join(names)}`: `AT (...)` is not supported",
                "write `FOR VERSION AS OF` or `FOR TIMESTAMP AS OF` after the table",
            )
        start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
        point = CURRENT
        if version is not None:
            point, end = _point(version, tokens, end)
        alias = None if table.alias else names[-1]
        yield TableUse(TableName(tuple(names[:-1]), names[-1]), point, start, end, alias)


def _point(version: exp.Expression, tokens: Sequence[Token], after: int) -> tuple[ReadPoint, int]:
    """The point of a ``FOR … AS OF``, and where its text ends."""
    from sqlglot import TokenType, exp

    kind, value = version.name.upper(), version.args["expression"]
    if isinstance(value, exp.Cast):
        value = value.this
    rest = [token for token in tokens if token.start >= after]
    of = next(at for at, token in enumerate(rest) if token.text.upper().endswith("OF"))
    literal = next((t for t in rest[of:] if t.token_type in (TokenType.STRING, TokenType.NUMBER)), None)
    if not isinstance(value, exp.Literal) or literal is None or literal.text != value.this:
        raise UsageError(
            f"`{version.sql('duckdb')}` is no constant",
            "write a time, such as `FOR TIMESTAMP AS OF '2026-01-31T12:00:00Z'`, or a snapshot id, a tag or "
            "a branch, such as `FOR VERSION AS OF 'audited'`",
        )
    end = literal.end + 1
    if kind == "TIMESTAMP":
        return ReadPoint(timestamp=parse_timestamp(value.this)), end
    if value.is_string:
        return ReadPoint(ref=value.this), end
    try:
        return ReadPoint(snapshot_id=int(value.this)), end
    except ValueError:
        raise UsageError(
            f"`{value.this}` is no snapshot id", "write a whole number, or a name in quotes"
        ) from None


def _qualifiers(tree: exp.Expression, uses: Sequence[TableUse]) -> Iterator[tuple[int, int]]:
    """Namespaces in front of columns: the views of tables have none."""
    from sqlglot import exp

    names = {(*use.name.namespace, use.name.name) for use in uses if use.alias is not None}
    for column in tree.find_all(exp.Column):
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        qualifier = tuple(part.name for part in parts[: len(column.parts) - 1])
        if len(qualifier) > 1 and qualifier in names:
            yield parts[0].meta["start"], parts[len(qualifier) - 1].meta["start"]
