"""Uses in SQL statements of every kind: queries, column lists that they write, and values by position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.sql_impact.affected import ChangeKind
from icemigrate.sql_impact.ddl_uses import (
    find_alter_uses,
    find_comment_uses,
    find_defined_column_uses,
    find_unvisited_uses,
)
from icemigrate.sql_impact.query_uses import QueryReader, ResolvedTable
from icemigrate.sql_impact.relations import (
    NONE,
    OPAQUE_RELATION,
    UNKNOWN_RELATION,
    FromItem,
    QueryScope,
    Relation,
)
from icemigrate.sql_impact.syntax_tree import chain_of, identifier_of, name_of, star_of

if TYPE_CHECKING:
    from sqlglot import exp


def find_insert_uses(reader: QueryReader, tree: exp.Insert) -> None:
    """``INSERT``: its list of columns, its partition, its query."""
    from sqlglot import exp

    found, target, table = _target(reader, tree.this)
    scope = reader.with_(tree, QueryScope())
    columns = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    for column in columns:
        reader.of_source(identifier_of(column), target.relation)
    partition = table.args.get("partition") if isinstance(table, exp.Table) else None
    reader.expression(partition, QueryScope((target,)))
    query = tree.expression
    if isinstance(query, exp.Query):
        reader.query(query, scope)
        if tree.args.get("by_name"):
            for projection in query.selects:
                reader.of_source(identifier_of(projection), target.relation)
            return
        find_star_uses(reader, query, scope, ChangeKind.DROPPED)
    if not columns and found.table is not None:
        _by_position(reader, table.parts[-1], found.table, ChangeKind.DROPPED)


def find_update_uses(reader: QueryReader, tree: exp.Update | exp.Delete) -> None:
    """``UPDATE`` and ``DELETE``."""
    _, target, _ = _target(reader, tree.this)
    scope = replace(reader.with_(tree, QueryScope()), sources=(target,))
    start = tree.args.get("from_")
    if start is not None:
        scope = reader.from_(start.this, scope)
    for child in (*tree.expressions, tree.args.get("where")):
        reader.expression(child, scope)


def find_merge_uses(reader: QueryReader, tree: exp.Merge) -> None:
    """``MERGE``: assigned and inserted columns belong to the target."""
    from sqlglot import exp

    found, target, _ = _target(reader, tree.this)
    scope = reader.with_(tree, QueryScope())
    scope = replace(scope, sources=(target, *reader.source(tree.args["using"], scope)))
    into = replace(scope, sources=(target,))
    reader.expression(tree.args.get("on"), scope)
    for when in tree.args["whens"].expressions:
        reader.expression(when.args.get("condition"), scope)
        then = when.args.get("then")
        if isinstance(then, exp.Update):
            for one in then.expressions:
                reader.expression(one.args.get("this"), into)
                reader.expression(one.args.get("expression"), scope)
        elif isinstance(then, exp.Insert):
            reader.expression(then.this if isinstance(then.this, exp.Tuple) else None, into)
            reader.expression(then.expression, scope)
        star = then.find(exp.Star) if isinstance(then, (exp.Update, exp.Insert)) else None
        if star is not None and found.table is not None:
            _by_position(reader, star, found.table, ChangeKind.RENAMED)


def find_star_uses(reader: QueryReader, query: Any, scope: QueryScope, *kinds: ChangeKind) -> None:
    """Stars whose columns count by position, or that copy the current columns.

    :param kinds: the kinds of change that matter there.
    """
    from sqlglot import exp

    for select in query.find_all(exp.Select) if isinstance(query, exp.SetOperation) else (query,):
        found = [star_of(p) for p in select.args.get("expressions") or ()]
        if not any(found):
            continue
        given = reader.quiet().query(select, reader.quiet().with_(query, scope))
        origins = sorted({o for held in given.columns.values() for o in held}, key=str)
        for star in filter(None, found):
            for origin in origins:
                for affected, _ in reader.find_affected(origin, ()):
                    if affected.change in kinds and not origin.named_in:
                        reader.use(star, affected, is_sure=False, via=origin.via, by_position=True)


def _by_position(reader: QueryReader, node: Any, table: TableName, change: ChangeKind) -> None:
    for affected in reader.affected_objects(table):
        if len(affected.path) == 1 and affected.change is change:
            reader.use(node, affected, is_sure=False, by_position=True)


def _target(reader: QueryReader, node: Any) -> tuple[ResolvedTable, FromItem, Any]:
    """The table that is written to."""
    from sqlglot import exp

    table = node.this if isinstance(node, exp.Schema) else node
    if not isinstance(table, exp.Table):
        return ResolvedTable(UNKNOWN_RELATION), FromItem((), UNKNOWN_RELATION), table
    parts = tuple(part.name.lower() for part in table.parts)
    found = reader.lookup(parts)
    reader.table(table, parts, QueryScope())
    return found, FromItem((table.alias.lower(),) if table.alias else parts, found.relation), table


def read_statement(reader: QueryReader, tree: Any) -> None:
    """Find the uses of a statement."""
    from sqlglot import exp

    if isinstance(tree, exp.Query):
        reader.query(tree, QueryScope())
    elif isinstance(tree, exp.Insert):
        find_insert_uses(reader, tree)
    elif isinstance(tree, (exp.Update, exp.Delete)):
        find_update_uses(reader, tree)
    elif isinstance(tree, exp.Merge):
        find_merge_uses(reader, tree)
    elif isinstance(tree, (exp.Create, exp.Cache)):
        relation = defined_relation(reader, tree)
        if isinstance(tree, exp.Create):
            find_defined_column_uses(reader, tree)
            _find_partition_uses(reader, tree, relation)
    elif isinstance(tree, exp.Alter):
        find_alter_uses(reader, tree)
    elif isinstance(tree, exp.Comment):
        find_comment_uses(reader, tree)
    elif not isinstance(tree, exp.Use):
        for table in tree.find_all(exp.Table):
            reader.source(table, QueryScope())
    if isinstance(tree, exp.Create):
        for table in tree.find_all(exp.Table):
            reader.tables |= reader.lookup(tuple(part.name.lower() for part in table.parts)).relation.tables
    find_unvisited_uses(reader, tree)


def _find_partition_uses(reader: QueryReader, tree: exp.Create, relation: Relation) -> None:
    """``PARTITIONED BY``, ``CLUSTERED BY`` and ``SORTED BY``: columns of the query behind ``AS``."""
    from sqlglot import exp

    properties = tree.args.get("properties")
    for given in properties.expressions if properties is not None else ():
        for node in given.find_all(exp.Column):
            if chain := chain_of(node):
                reader.seen |= {part.meta.get("start", -1) for part in chain}
                held = relation.columns.get(chain[0].name.lower(), NONE)
                reader.origins(chain, held, is_sure=relation.is_sure)
        for schema in given.find_all(exp.Schema):
            for name in schema.expressions:
                reader.of_source(name if isinstance(name, exp.Identifier) else None, relation)


def defined_relation(reader: QueryReader, tree: Any) -> Relation:
    """The relation of a view, or of a table that a query creates."""
    from sqlglot import exp

    query = tree.args.get("expression")
    if isinstance(query, exp.Return):
        query = query.this
    if not isinstance(query, exp.Query):
        return UNKNOWN_RELATION if query is None else OPAQUE_RELATION
    scope = reader.with_(tree, QueryScope())
    relation = reader.query(query, scope)
    is_view = isinstance(tree, exp.Create) and tree.args.get("kind") == "VIEW"
    if is_view and tree.find(exp.TemporaryProperty) is None:
        # It keeps the columns and the types that its stars had when it was created.
        find_star_uses(reader, query, scope, *ChangeKind)
    columns = tree.this.expressions if isinstance(tree.this, exp.Schema) else ()
    return relation.renamed([name_of(c) for c in columns])
