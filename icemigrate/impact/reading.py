"""A query's syntax tree → the uses of what is at stake, and the columns that the query gives.

Names are resolved as SQL resolves them, by the declared columns: aliases, common table expressions,
subqueries (correlated ones too), joins with ``USING``, stars, and fields of structs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from icemigrate.frozen import Frozen, replace
from icemigrate.impact.relations import (
    NONE,
    UNKNOWN,
    Origin,
    Origins,
    Relation,
    Scope,
    Source,
    joined,
    united,
)
from icemigrate.impact.stakes import Stake
from icemigrate.impact.tree import (
    alias_columns_of,
    chain_of,
    name_of,
    plain_name_of,
    qualifier_of,
    star_of,
)
from icemigrate.model.names import TableName

if TYPE_CHECKING:
    from sqlglot import exp

_OVER_OUTPUT = ("order", "group", "having", "qualify", "sort", "distribute", "cluster")
"""Clauses that may say the names that the projection gives."""
_PASSING = ("Cast", "TryCast", "Paren", "Explode", "Posexplode", "ExplodeOuter", "Unnest")
"""What a column may stand in and still be that column, or an element of it."""


class Use(Frozen):
    """A place that uses what is at stake.

    :param at: index in the SQL text that was parsed.
    :param written: as it stands there.
    :param via: views and models between the table and this place.
    :param by_position: whether no name is written there, but a star or a list of values by position.
    """

    at: int
    written: str
    stake: Stake
    is_sure: bool
    via: tuple[str, ...] = ()
    by_position: bool = False


class Named(Frozen):
    """A table that SQL names.

    :param table_stakes: what becomes of the table itself.
    :param table: the declared table; ``None`` for a view, a model, or what nobody knows.
    """

    relation: Relation
    table: TableName | None = None
    table_stakes: tuple[Stake, ...] = ()


Lookup = Callable[[Sequence[str]], Named]
"""What a name of a table means, by its parts in lower case."""


class Reader:
    """Reads the queries and expressions of one file.

    :param stakes: what is at stake in a table.
    """

    def __init__(self, file: str, lookup: Lookup, stakes: Callable[[TableName], tuple[Stake, ...]]) -> None:
        self.file, self.lookup, self.stakes = file, lookup, stakes
        self.uses: dict[tuple[int, Stake], Use] = {}

    def quiet(self) -> Reader:
        """One that finds the same and is not asked for it."""
        return Reader(self.file, self.lookup, self.stakes)

    # Queries

    def query(self, node: Any, scope: Scope) -> Relation:
        """What a query gives.

        :param scope: of the place where it stands.
        """
        from sqlglot import exp

        scope = self.with_(node, scope)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, scope) if isinstance(node.this, exp.Query) else UNKNOWN
        if isinstance(node, exp.SetOperation):
            left, right = self.query(node.this, scope), self.query(node.expression, scope)
            return united(left, right, by_name=bool(node.args.get("by_name")))
        if isinstance(node, exp.Select):
            return self._select(node, scope)
        for child in node.iter_expressions():
            self.expression(child, scope)
        return UNKNOWN

    def with_(self, node: Any, scope: Scope) -> Scope:
        """The scope with the common table expressions that stand before a node."""
        found = node.args.get("with_")
        ctes = dict(scope.ctes)
        for cte in found.expressions if found is not None else ():
            inside = replace(scope, ctes={**ctes, cte.alias.lower(): UNKNOWN} if found.recursive else ctes)
            ctes[cte.alias.lower()] = self.query(cte.this, inside).renamed(alias_columns_of(cte))
        return replace(scope, ctes=ctes)

    def _select(self, node: exp.Select, outer: Scope) -> Relation:
        scope = Scope((), outer, outer.ctes)
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
        return self._projection(node.expressions, scope)

    def from_(self, node: Any, scope: Scope) -> Scope:
        """The scope with a source, and what is joined to it, in it."""
        source = self.source(node, scope)
        scope = replace(scope, sources=(*scope.sources, *source))
        return self._joins(node, scope)

    def _joins(self, node: Any, scope: Scope) -> Scope:
        from sqlglot import exp

        for join in node.args.get("joins") or ():
            scope = self.from_(join.this, scope)
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
                made = replace(made, columns={**made.columns, columns[-1]: self._held(lateral.this, scope)})
            scope = replace(scope, sources=(*scope.sources, Source(names, made)))
        return scope

    def source(self, node: Any, scope: Scope) -> tuple[Source, ...]:
        from sqlglot import exp

        alias = node.alias_or_name.lower() if node.alias else ""
        if isinstance(node, exp.Table):
            parts = tuple(part.name.lower() for part in node.parts)
            relation = self.table(node, parts, scope)
            names = (alias,) if alias else parts
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            return self.from_(node.this, replace(scope, sources=())).sources
        elif isinstance(node, exp.Query):
            # What stands in FROM sees no columns of its neighbours.
            relation, names = self.query(node, Scope((), None, scope.ctes)), (alias,)
        else:
            self.expression(node.this if isinstance(node, exp.Lateral) else node, scope)
            relation, names = UNKNOWN, (alias,)
        for pivot in node.args.get("pivots") or ():
            self.expression(pivot, replace(scope, sources=(Source(names, relation),)))
            relation = replace(relation, is_complete=False)
        return (Source(names, relation.renamed(alias_columns_of(node))),)

    def table(self, node: exp.Table, parts: tuple[str, ...], scope: Scope) -> Relation:
        if len(parts) == 1 and parts[0] in scope.ctes:
            return scope.ctes[parts[0]]
        for argument in ("version", "when"):
            self.expression(node.args.get(argument), scope)
        found = self.lookup(parts)
        for stake in found.table_stakes:
            self.use(node.parts[-1], stake, is_sure=found.relation.is_sure)
        return found.relation

    def _projection(self, projections: Iterable[Any], scope: Scope) -> Relation:
        """The columns that a query gives."""
        columns: dict[str, Origins] = {}
        is_complete = True
        for number, projection in enumerate(projections):
            star, sources = star_of(projection), scope.sources
            if star is not None:
                before = qualifier_of(projection)
                sources = tuple(s for s in sources if not before or s.qualified((*before, "")))
                whole = joined(s.relation for s in sources)
                without = {name_of(e) for e in (star.args.get("except_") or ())}
                columns |= {n: columns.get(n, NONE) | o for n, o in whole.columns.items() if n not in without}
                is_complete = is_complete and whole.is_complete and bool(sources)
                continue
            name = projection.alias_or_name.lower() or f"__column_{number}__"
            columns[name] = columns.get(name, NONE) | self._held(projection, scope)
        return Relation(columns, is_complete)

    def _held(self, projection: Any, scope: Scope) -> Origins:
        """The declared columns that a projection hands on."""
        node = projection.this if projection.key == "alias" else projection
        while type(node).__name__ in _PASSING:
            node = node.this
        chain = chain_of(node)
        if not chain:
            return NONE
        names = [part.name.lower() for part in chain]
        held = set()
        for count, origins, _ in scope.find(names):
            for origin in origins:
                fields = names[count + 1 :]
                named_in = self.file if fields else origin.named_in or self.file
                held.add(replace(origin, path=(*origin.path, *fields), named_in=named_in))
        return frozenset(held)

    # Expressions

    def expression(self, node: Any, scope: Scope) -> None:
        """Find the uses in an expression."""
        from sqlglot import exp

        # Generated SQL joins thousands of terms by `OR`, each one deeper than the one before.
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if isinstance(at, exp.Expr) and not self._is_told(at, scope):
                waiting.extend(at.iter_expressions())

    def _is_told(self, node: Any, scope: Scope) -> bool:
        """Find the uses in what is more than its parts; whether it was that."""
        from sqlglot import exp

        if isinstance(node, exp.Query):
            self.query(node, Scope((), scope, scope.ctes) if not scope.sources else scope)
            return True
        if isinstance(node, exp.Lambda):
            names = frozenset(p.name.lower() for p in node.expressions)
            self.expression(node.this, replace(scope, shadowed=scope.shadowed | names))
            return True
        chain = chain_of(node)
        if chain:
            self._column(chain, scope)
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

    def _column(self, chain: Sequence[exp.Identifier], scope: Scope) -> None:
        for count, origins, is_sure in scope.find([part.name.lower() for part in chain]):
            self._origins(chain[count:], origins, is_sure=is_sure)

    def of_source(self, name: exp.Identifier | None, relation: Relation) -> None:
        """A column of one relation by its name alone."""
        if name is None:
            return
        origins = relation.columns.get(name.name.lower(), NONE)
        self._origins([name], origins, is_sure=relation.is_sure)

    def _origins(self, chain: Sequence[exp.Identifier], origins: Origins, *, is_sure: bool) -> None:
        """A column, and fields of it, that holds declared columns."""
        for origin in origins:
            for stake, depth in self.at_stake(origin, [part.name.lower() for part in chain[1:]]):
                named_in = origin.named_in if len(origin.path) >= len(stake.path) else ""
                # Where this file names it itself, it is told there.
                if named_in != self.file:
                    self.use(chain[depth], stake, is_sure=is_sure and not named_in, via=origin.via)

    def at_stake(self, origin: Origin, fields: Sequence[str]) -> Iterator[tuple[Stake, int]]:
        """What is at stake in a column or a field of it, and which of its names says so."""
        path = [name.lower() for name in (*origin.path, *fields)]
        for stake in self.stakes(origin.table):
            wanted = [name.lower() for name in stake.path]
            if wanted and path[: len(wanted)] == wanted:
                yield stake, max(0, len(wanted) - len(origin.path))

    def use(
        self, node: Any, stake: Stake, *, is_sure: bool, via: tuple[str, ...] = (), by_position: bool = False
    ) -> None:
        at = node.meta.get("start")
        if at is None:
            return
        known = self.uses.get((at, stake))
        if known is None or (is_sure and not known.is_sure):
            written = "*" if node.key == "star" else node.name
            self.uses[at, stake] = Use(at, written, stake, is_sure, via, by_position)
