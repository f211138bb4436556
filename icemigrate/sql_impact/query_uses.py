"""Finds uses of changed objects in a query's syntax tree, and the output columns of the query.

Names are resolved as in SQL, with the declared columns: aliases, common table expressions, subqueries
(correlated ones too), joins with ``USING``, stars, and fields of structs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName
from icemigrate.sql_impact.affected import AffectedObject, ChangeKind
from icemigrate.sql_impact.held_columns import held_columns, held_row
from icemigrate.sql_impact.jinja_values import ARGUMENTS, UNKNOWN, VARIABLE
from icemigrate.sql_impact.relations import (
    NONE,
    OPAQUE_RELATION,
    UNKNOWN_RELATION,
    ColumnOrigin,
    FromItem,
    Origins,
    QueryScope,
    Relation,
    RowOrigins,
    joined_relation,
    union_relation,
)
from icemigrate.sql_impact.syntax_tree import (
    alias_columns_of,
    chain_of,
    field_names,
    name_of,
    plain_name_of,
    qualifier_of,
    star_of,
)

if TYPE_CHECKING:
    from sqlglot import exp

_OVER_OUTPUT = ("order", "group", "having", "qualify", "sort", "distribute", "cluster")
"""Clauses that may say the names that the projection gives."""
_READERS = ("read_", "range", "sequence", "generate_series", "values", "stack")
"""Table functions that read no declared table, by how their names begin."""


class SqlUse(Frozen):
    """A use of a changed object.

    :param at: index in the parsed SQL text.
    :param written: the text at that index.
    :param via: views and models between the table and the use.
    :param by_position: whether the use has no name, but is a star or a list of values by position.
    """

    at: int
    written: str
    affected: AffectedObject
    is_sure: bool
    via: tuple[str, ...] = ()
    by_position: bool = False


class ResolvedTable(Frozen):
    """A table in SQL.

    :param affected_tables: changes of the table itself.
    :param table: the declared table; ``None`` for a view, a model, or an unknown object.
    """

    relation: Relation
    table: TableName | None = None
    affected_tables: tuple[AffectedObject, ...] = ()


TableLookup = Callable[[Sequence[str]], ResolvedTable]
"""Resolves the name of a table from its parts in lower case."""


class QueryReader:
    """Reads the queries and expressions of one file.

    :param affected_objects: the changed objects of a table.

    After reading, ``uses`` holds the uses; ``seen`` the indexes of the names that were resolved or are
    surely something else; ``unresolved`` the names that may belong to an opaque relation; and ``tables`` the
    declared tables that were read, directly or through views and models.
    """

    def __init__(
        self,
        file: str,
        lookup: TableLookup,
        affected_objects: Callable[[TableName], tuple[AffectedObject, ...]],
    ) -> None:
        self.file, self.lookup, self.affected_objects = file, lookup, affected_objects
        self.uses: dict[tuple[int, AffectedObject], SqlUse] = {}
        self.seen: set[int] = set()
        self.unresolved: list[Sequence[exp.Identifier]] = []
        self.tables: set[TableName] = set()
        self.relations: list[Relation] = []
        self._is_argument = False

    def quiet(self) -> QueryReader:
        """A reader that resolves the same names, but reports no uses."""
        return QueryReader(self.file, self.lookup, self.affected_objects)

    # Queries

    def query(self, node: Any, scope: QueryScope) -> Relation:
        """The output columns of a query.

        :param scope: of the query's position.
        """
        from sqlglot import exp

        scope = self.with_(node, scope)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, scope) if isinstance(node.this, exp.Query) else OPAQUE_RELATION
        if isinstance(node, exp.SetOperation):
            left, right = self.query(node.this, scope), self.query(node.expression, scope)
            return union_relation(left, right, by_name=bool(node.args.get("by_name")))
        if isinstance(node, exp.Select):
            return self._select(node, scope)
        for child in node.iter_expressions():
            self.expression(child, scope)
        return UNKNOWN_RELATION if isinstance(node, exp.Values) else OPAQUE_RELATION

    def with_(self, node: Any, scope: QueryScope) -> QueryScope:
        """The scope with the common table expressions before a node."""
        found = node.args.get("with_")
        ctes = dict(scope.ctes)
        for cte in found.expressions if found is not None else ():
            inside = replace(
                scope, ctes={**ctes, cte.alias.lower(): UNKNOWN_RELATION} if found.recursive else ctes
            )
            ctes[cte.alias.lower()] = self.query(cte.this, inside).renamed(alias_columns_of(cte))
        return replace(scope, ctes=ctes)

    def _select(self, node: exp.Select, outer: QueryScope) -> Relation:
        scope = QueryScope((), outer, outer.ctes)
        start = node.args.get("from_")
        if start is not None:
            scope = self.from_(start.this, scope)
        scope = self._joins(node, scope)
        named = {
            p.alias.lower() for p in node.expressions if p.key == "alias" and p.alias != plain_name_of(p.this)
        }
        for key, value in node.args.items():
            if key not in ("with_", "from_", "joins", "laterals"):
                here = replace(scope, aliases=frozenset(named)) if key in _OVER_OUTPUT else scope
                for child in value if isinstance(value, list) else [value]:
                    self.expression(child, here)
        return self.projection(node.expressions, scope)

    def from_(self, node: Any, scope: QueryScope) -> QueryScope:
        """The scope with a source and its joined sources."""
        source = self.source(node, scope)
        scope = replace(scope, sources=(*scope.sources, *source))
        return self._joins(node, scope)

    def _joins(self, node: Any, scope: QueryScope) -> QueryScope:
        from sqlglot import exp

        for join in node.args.get("joins") or ():
            left, scope = scope.sources, self.from_(join.this, scope)
            if join.args.get("method") == "NATURAL":
                self._natural(join.this, left, scope.sources[len(left) :])
            for identifier in join.args.get("using") or ():
                name = identifier if isinstance(identifier, exp.Identifier) else identifier.this
                for source in scope.sources:
                    self.of_source(name, source.relation)
            self.expression(join.args.get("on"), scope)
        for lateral in node.args.get("laterals") or ():
            self.expression(lateral.this, scope)
            names = tuple(n for n in (lateral.alias.lower(),) if n)
            columns = alias_columns_of(lateral)
            made = Relation(dict.fromkeys(columns, NONE), is_complete=bool(columns))
            if columns:
                # The element is the last one; what may stand before it is its position.
                made = replace(
                    made, columns={**made.columns, columns[-1]: held_columns(self.file, lateral.this, scope)}
                )
            scope = replace(scope, sources=(*scope.sources, FromItem(names, made)))
        return scope

    def _natural(self, node: Any, left: Sequence[FromItem], right: Sequence[FromItem]) -> None:
        """``NATURAL JOIN`` compares all columns that both sides have, and names none of them."""
        for mine, others in ((left, right), (right, left)):
            whole, other = (
                joined_relation(s.relation for s in mine),
                joined_relation(s.relation for s in others),
            )
            for name, origins in whole.columns.items():
                if name in other.columns or not other.is_complete:
                    for affected, origin in self._affected_by(origins):
                        self.use(_any_name(node), affected, is_sure=False, via=origin.via, by_position=True)

    def source(self, node: Any, scope: QueryScope) -> tuple[FromItem, ...]:
        from sqlglot import exp

        alias = node.alias_or_name.lower() if node.alias else ""
        if isinstance(node, exp.Table):
            parts = tuple(part.name.lower() for part in node.parts)
            relation = self.table(node, parts, scope)
            if isinstance(node.this, exp.Func):
                for child in node.this.iter_expressions():
                    self.expression(child, scope)
                relation = OPAQUE_RELATION if not _is_reader(node.name) else relation
            names = (alias,) if alias else parts
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            return self.from_(node.this, replace(scope, sources=())).sources
        elif isinstance(node, exp.Query):
            # A source in FROM sees no columns of other sources.
            relation, names = self.query(node, QueryScope((), None, scope.ctes)), (alias,)
        else:
            self.expression(node.this if isinstance(node, exp.Lateral) else node, scope)
            relation, names = UNKNOWN_RELATION, (alias,)
        for pivot in node.args.get("pivots") or ():
            self.expression(pivot, replace(scope, sources=(FromItem(names, relation),)))
            relation = replace(relation, is_complete=False)
        return (FromItem(names, relation.renamed(alias_columns_of(node))),)

    def table(self, node: exp.Table, parts: tuple[str, ...], scope: QueryScope) -> Relation:
        if len(parts) == 1 and parts[0] in scope.ctes:
            return scope.ctes[parts[0]]
        for argument in ("version", "when"):
            self.expression(node.args.get(argument), scope)
        found = self.lookup(parts)
        self.relations.append(found.relation)
        self.tables |= found.relation.tables | ({found.table} if found.table is not None else set())
        for affected in found.affected_tables:
            self.use(node.parts[-1], affected, is_sure=found.relation.is_sure)
        return found.relation

    def projection(self, projections: Iterable[Any], scope: QueryScope) -> Relation:
        """The columns that a query gives."""
        columns: dict[str, Origins] = {}
        rows: dict[str, RowOrigins] = {}
        is_complete, is_opaque, behind = True, False, frozenset[TableName]()
        for number, projection in enumerate(projections):
            star, sources = star_of(projection), scope.sources
            if star is not None:
                before = qualifier_of(projection)
                sources = tuple(s for s in sources if not before or s.qualified((*before, "")))
                whole = joined_relation(s.relation for s in sources)
                without = {name_of(e) for e in (star.args.get("except_") or ())}
                columns |= {n: columns.get(n, NONE) | o for n, o in whole.columns.items() if n not in without}
                rows |= {n: row for n, row in whole.rows.items() if n not in without}
                is_complete = is_complete and whole.is_complete and bool(sources)
                is_opaque, behind = is_opaque or whole.is_opaque, behind | whole.behind
                continue
            name = projection.alias_or_name.lower() or f"__column_{number}__"
            columns[name] = columns.get(name, NONE) | held_columns(self.file, projection, scope)
            if row := held_row(self, projection, scope):
                rows[name] = row
        return Relation(columns, is_complete, rows=rows, is_opaque=is_opaque, behind=behind)

    # Expressions

    def expression(self, node: Any, scope: QueryScope) -> None:
        """Find the uses in an expression."""
        from sqlglot import exp

        # Generated SQL joins thousands of terms by `OR`, each one deeper than the one before.
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if isinstance(at, exp.Expr) and not self._find_special_uses(at, scope):
                waiting.extend(at.iter_expressions())

    def _find_special_uses(self, node: Any, scope: QueryScope) -> bool:
        """Find the uses in an expression that its parts do not show; returns whether it was one."""
        from sqlglot import exp

        if isinstance(node, exp.Query):
            self.query(node, QueryScope((), scope, scope.ctes) if not scope.sources else scope)
            return True
        if isinstance(node, exp.Lambda):
            names = frozenset(p.name.lower() for p in node.expressions)
            self.expression(node.this, replace(scope, shadowed=scope.shadowed | names))
            return True
        chain = chain_of(node)
        if chain:
            self._column(chain, scope)
            return True
        if isinstance(node, exp.Anonymous) and node.name == ARGUMENTS and not self._is_argument:
            # What a macro does with its arguments is unknown.
            self._is_argument = True
            for argument in node.expressions:
                self.expression(argument, scope)
            self._is_argument = False
            return True
        if isinstance(node, exp.Dot) and (fields := field_names(node)):
            self._field(node, fields, scope)
            return True
        star = star_of(node)
        if star is not None:
            for excepted in star.args.get("except_") or ():
                identifier = excepted if isinstance(excepted, exp.Identifier) else excepted.this
                for source in scope.sources:
                    self.of_source(identifier, source.relation)
            for more in (*(star.args.get("replace") or ()), *(star.args.get("rename") or ())):
                self.expression(more, scope)
        return star is not None

    def _column(self, chain: Sequence[exp.Identifier], scope: QueryScope) -> None:
        names = [part.name.lower() for part in chain]
        self.seen |= {part.meta.get("start", -1) for part in chain}
        for count, origins, is_sure in scope.find(names):
            self.origins(chain[count:], origins, is_sure=is_sure)
        if UNKNOWN in names[-1] and names[-1] != UNKNOWN:
            # A name that a template completes, `total_{{ currency }}`, may be any column that fits.
            parts = names[-1].replace(VARIABLE, UNKNOWN).split(UNKNOWN)
            fitting = re.compile(".*".join(map(re.escape, parts)))
            for name, origins in ((n, o) for s in scope.sources for n, o in s.relation.columns.items()):
                for affected, origin in self._affected_by(origins if fitting.fullmatch(name) else NONE):
                    self.use(chain[-1], affected, is_sure=False, via=origin.via)
        if scope.is_opaque(names):
            self.unresolved.append(chain)

    def _field(self, node: exp.Dot, names: Sequence[exp.Identifier], scope: QueryScope) -> None:
        """A field of what an expression computes: ``max_by(struct(s.*), at).total``."""
        start = node
        while start.key == "dot":
            start = start.this
        self.expression(start, scope)
        self.seen |= {name.meta.get("start", -1) for name in names}
        row = held_row(self, start, scope)
        self.origins(names, row.get(names[0].name.lower(), NONE), is_sure=True)
        for origin in held_columns(self.file, start, scope):
            for affected, depth in self.find_affected(origin, [name.name.lower() for name in names]):
                if depth:
                    self.use(names[depth - 1], affected, is_sure=False, via=origin.via)

    def of_source(self, name: exp.Identifier | None, relation: Relation) -> None:
        """A column of one relation by its own name."""
        if name is None:
            return
        self.seen.add(name.meta.get("start", -1))
        origins = relation.columns.get(name.name.lower(), NONE)
        self.origins([name], origins, is_sure=relation.is_sure)

    def origins(self, chain: Sequence[Any], origins: Origins, *, is_sure: bool) -> None:
        """A column with nested fields that declared columns supply."""
        for origin in origins:
            for affected, depth in self.find_affected(origin, [part.name.lower() for part in chain[1:]]):
                named_in = origin.named_in if len(origin.path) >= len(affected.path) else ""
                # A name that this file itself uses is reported there.
                if named_in != self.file:
                    self.use(chain[depth], affected, is_sure=is_sure and not named_in, via=origin.via)

    def find_affected(
        self, origin: ColumnOrigin, fields: Sequence[str]
    ) -> Iterator[tuple[AffectedObject, int]]:
        """The changes of a column or a nested field, and the index of the name that shows them."""
        path = [name.lower() for name in (*origin.path, *fields)]
        for affected in self.affected_objects(origin.table):
            wanted = [name.lower() for name in affected.path]
            if origin.is_inside and len(wanted) <= len(origin.path):
                continue
            if wanted and path[: len(wanted)] == wanted:
                yield affected, max(0, len(wanted) - len(origin.path))

    def _affected_by(self, origins: Origins) -> Iterator[tuple[AffectedObject, ColumnOrigin]]:
        for origin in origins:
            found = (affected for affected, _ in self.find_affected(origin, ()))
            yield from ((affected, origin) for affected in found if affected.change is not ChangeKind.MOVED)

    def use(
        self,
        node: Any,
        affected: AffectedObject,
        *,
        is_sure: bool,
        via: tuple[str, ...] = (),
        by_position: bool = False,
    ) -> None:
        at = node.meta.get("start")
        if at is None or (affected.change is ChangeKind.MOVED and not by_position):
            return
        is_sure = is_sure and not self._is_argument
        known = self.uses.get((at, affected))
        if known is None or (is_sure and not known.is_sure):
            written = "*" if node.key == "star" else node.name
            self.uses[at, affected] = SqlUse(at, written, affected, is_sure, via, by_position)


def _is_reader(function: str) -> bool:
    return function.lower().startswith(_READERS)


def _any_name(node: Any) -> Any:
    """A name in a node, whose position is that of the node."""
    from sqlglot import exp

    return next((found for found in node.find_all(exp.Identifier) if "start" in found.meta), node)
