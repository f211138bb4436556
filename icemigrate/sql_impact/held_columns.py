"""What an expression hands on of the columns in it: a column, fields of one, or a whole row as a struct."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icemigrate.frozen import replace
from icemigrate.sql_impact.relations import NONE, Origins, QueryScope, RowOrigins, merged_rows
from icemigrate.sql_impact.syntax_tree import chain_of, is_within_chain

if TYPE_CHECKING:
    from icemigrate.sql_impact.query_uses import QueryReader

_PASSING = ("Cast", "TryCast", "Paren", "Explode", "Posexplode", "ExplodeOuter", "Unnest")
"""The functions that return their column, or an element of it."""


def held_columns(file: str, projection: Any, scope: QueryScope) -> Origins:
    """The declared columns that a projection hands on.

    :param file: the file that names them here.
    """
    node = projection.this if projection.key == "alias" else projection
    while type(node).__name__ in _PASSING:
        node = node.this
    chain = chain_of(node)
    if not chain:
        return _inside(file, node, scope)
    names = [part.name.lower() for part in chain]
    held = set()
    for count, origins, _ in scope.find(names):
        for origin in origins:
            fields = names[count + 1 :]
            named_in = file if fields else origin.named_in or file
            held.add(replace(origin, path=(*origin.path, *fields), named_in=named_in))
    return frozenset(held)


def _inside(file: str, node: Any, scope: QueryScope) -> Origins:
    """The declared columns that a function may hand on, so that their fields can be read from it."""
    from sqlglot import exp

    if not isinstance(node, exp.Func):
        return NONE
    held = set()
    for at in node.walk(prune=lambda n: isinstance(n, exp.Query)):
        if isinstance(at, exp.Column) and chain_of(at):
            held |= {replace(origin, is_inside=True) for origin in held_columns(file, at, scope)}
    return frozenset(held)


def held_row(reader: QueryReader, node: Any, scope: QueryScope) -> RowOrigins:
    """The fields of the rows that an expression hands on as structs.

    ``s`` of ``FROM orders AS s``, ``struct(s.*)``, ``max_by(struct(s.*), at)``.
    """
    from sqlglot import exp

    fields: RowOrigins = {}
    for at in node.walk(prune=lambda n: isinstance(n, exp.Query) or _is_struct(n)):
        if isinstance(at, exp.Subquery):
            inner = reader.quiet().query(at, QueryScope((), scope, scope.ctes))
            for row in inner.rows.values():
                fields = merged_rows(fields, row)
        elif _is_struct(at):
            made = reader.quiet().projection(at.expressions, scope)
            for row in (made.columns, *made.rows.values()):
                fields = merged_rows(fields, row)
        elif not is_within_chain(at) and (chain := chain_of(at)):
            names = [part.name.lower() for part in chain]
            found = [s.relation.rows.get(names[-1], {}) for s in scope.sources if len(names) < 3]
            for row in (scope.row(names), *found):
                fields = merged_rows(fields, row)
    return fields


def _is_struct(node: Any) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Struct) or (isinstance(node, exp.Anonymous) and "struct" in node.name.lower())
