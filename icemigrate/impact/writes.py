"""What statements write: column lists of ``INSERT``, ``UPDATE``, ``MERGE``, and what goes by position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icemigrate.frozen import replace
from icemigrate.impact.reading import Named, Reader
from icemigrate.impact.relations import UNKNOWN, Scope, Source
from icemigrate.impact.stakes import Fate
from icemigrate.impact.tree import identifier_of, star_of
from icemigrate.model.names import TableName

if TYPE_CHECKING:
    from sqlglot import exp


def insert(reader: Reader, tree: exp.Insert) -> None:
    """``INSERT``: its list of columns, its partition, its query."""
    from sqlglot import exp

    found, target, table = _target(reader, tree.this)
    scope = reader.with_(tree, Scope())
    columns = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    for column in columns:
        reader.of_source(identifier_of(column), target.relation)
    partition = table.args.get("partition") if isinstance(table, exp.Table) else None
    reader.expression(partition, Scope((target,)))
    query = tree.expression
    if isinstance(query, exp.Query):
        reader.query(query, scope)
        if tree.args.get("by_name"):
            for projection in query.selects:
                reader.of_source(identifier_of(projection), target.relation)
            return
        stars(reader, query, scope, Fate.DROPPED)
    if not columns and found.table is not None:
        _by_position(reader, table.parts[-1], found.table, Fate.DROPPED)


def update(reader: Reader, tree: exp.Update | exp.Delete) -> None:
    """``UPDATE`` and ``DELETE``."""
    _, target, _ = _target(reader, tree.this)
    scope = replace(reader.with_(tree, Scope()), sources=(target,))
    start = tree.args.get("from_")
    if start is not None:
        scope = reader.from_(start.this, scope)
    for child in (*tree.expressions, tree.args.get("where")):
        reader.expression(child, scope)


def merge(reader: Reader, tree: exp.Merge) -> None:
    """``MERGE``: what is set and inserted are columns of the target."""
    from sqlglot import exp

    found, target, _ = _target(reader, tree.this)
    scope = reader.with_(tree, Scope())
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
            _by_position(reader, star, found.table, Fate.RENAMED)


def stars(reader: Reader, query: Any, scope: Scope, *fates: Fate) -> None:
    """Stars whose columns count by position, or are kept as they are now.

    :param fates: what of a column matters there.
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
                for stake, _ in reader.at_stake(origin, ()):
                    if stake.fate in fates and not origin.named_in:
                        reader.use(star, stake, is_sure=False, via=origin.via, by_position=True)


def _by_position(reader: Reader, node: Any, table: TableName, fate: Fate) -> None:
    for stake in reader.stakes(table):
        if len(stake.path) == 1 and stake.fate is fate:
            reader.use(node, stake, is_sure=False, by_position=True)


def _target(reader: Reader, node: Any) -> tuple[Named, Source, Any]:
    """The table that is written to."""
    from sqlglot import exp

    table = node.this if isinstance(node, exp.Schema) else node
    if not isinstance(table, exp.Table):
        return Named(UNKNOWN), Source((), UNKNOWN), table
    parts = tuple(part.name.lower() for part in table.parts)
    found = reader.lookup(parts)
    reader.table(table, parts, Scope())
    return found, Source((table.alias.lower(),) if table.alias else parts, found.relation), table
