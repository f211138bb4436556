"""Small questions to SQLGlot's syntax trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp


def chain_of(node: Any) -> list[exp.Identifier]:
    """The dotted names of a column and its nested fields; empty for other expressions."""
    from sqlglot import exp

    fields: list[exp.Identifier] = []
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        fields.append(node.expression)
        node = node.this
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return []
    parts = [node.args.get(key) for key in ("catalog", "db", "table", "this")]
    return [*(p for p in parts if isinstance(p, exp.Identifier)), *reversed(fields)]


def is_within_chain(node: Any) -> bool:
    """Whether an expression is the beginning of a longer dotted name."""
    from sqlglot import exp

    parent = node.parent
    return (
        isinstance(parent, exp.Dot) and parent.this is node and isinstance(parent.expression, exp.Identifier)
    )


def field_names(node: exp.Dot) -> list[exp.Identifier]:
    """The names behind an expression that is no column: `a`, `b` of ``f(x).a.b``."""
    from sqlglot import exp

    names: list[exp.Identifier] = []
    at: Any = node
    while isinstance(at, exp.Dot) and isinstance(at.expression, exp.Identifier):
        names.append(at.expression)
        at = at.this
    return [] if isinstance(at, exp.Dot) else names[::-1]


def star_of(node: Any) -> exp.Star | None:
    from sqlglot import exp

    if isinstance(node, exp.Column):
        node = node.this
    return node if isinstance(node, exp.Star) else None


def qualifier_of(node: Any) -> tuple[str, ...]:
    from sqlglot import exp

    if not isinstance(node, exp.Column):
        return ()
    return tuple(p.name.lower() for p in (node.args.get(k) for k in ("catalog", "db", "table")) if p)


def identifier_of(node: Any) -> Any:
    """The name that a column of a list, or a projection, has."""
    from sqlglot import exp

    if isinstance(node, exp.Alias):
        return node.args["alias"]
    while isinstance(node, (exp.Column, exp.ColumnDef)):
        node = node.this
    return node if isinstance(node, exp.Identifier) else None


def name_of(node: Any) -> str:
    found = identifier_of(node)
    return str(found.name).lower() if found is not None else ""


def plain_name_of(node: Any) -> str:
    chain = chain_of(node)
    return chain[-1].name if chain else ""


def alias_columns_of(node: Any) -> list[str]:
    alias = node.args.get("alias")
    columns = getattr(alias, "columns", None) or ()
    return [name_of(column) for column in columns]
