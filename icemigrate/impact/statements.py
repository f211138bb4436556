"""Statements of every kind: what each uses of what is at stake, and what it leaves to others."""

from __future__ import annotations

from typing import Any

from icemigrate.impact.reading import Reader
from icemigrate.impact.relations import UNKNOWN, Relation, Scope
from icemigrate.impact.stakes import Fate
from icemigrate.impact.tree import name_of
from icemigrate.impact.writes import insert, merge, stars, update


def read_statement(reader: Reader, tree: Any) -> None:
    """Find the uses of a statement."""
    from sqlglot import exp

    if isinstance(tree, exp.Query):
        reader.query(tree, Scope())
    elif isinstance(tree, exp.Insert):
        insert(reader, tree)
    elif isinstance(tree, (exp.Update, exp.Delete)):
        update(reader, tree)
    elif isinstance(tree, exp.Merge):
        merge(reader, tree)
    elif isinstance(tree, (exp.Create, exp.Cache)):
        defined_relation(reader, tree)
    elif not isinstance(tree, (exp.Alter, exp.Use)):
        for table in tree.find_all(exp.Table):
            reader.source(table, Scope())


def defined_relation(reader: Reader, tree: Any) -> Relation:
    """What a view, or a table that is made of a query, holds."""
    from sqlglot import exp

    query = tree.args.get("expression")
    if not isinstance(query, exp.Query):
        return UNKNOWN
    scope = reader.with_(tree, Scope())
    relation = reader.query(query, scope)
    is_view = isinstance(tree, exp.Create) and tree.args.get("kind") == "VIEW"
    if is_view and tree.find(exp.TemporaryProperty) is None:
        # It keeps the columns that its stars had when it was made.
        stars(reader, query, scope, Fate.DROPPED, Fate.RENAMED)
    columns = tree.this.expressions if isinstance(tree.this, exp.Schema) else ()
    return relation.renamed([name_of(c) for c in columns])
