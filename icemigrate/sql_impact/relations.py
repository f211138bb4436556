"""Relations in SQL, whose columns know the declared columns that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.names import FieldPath, TableName


class ColumnOrigin(Frozen):
    """A declared column that a relation's column contains.

    :param via: views and models that it came through, the nearest last.
    :param named_in: the file that names it first on its way; empty where nothing but stars passed it on.
    :param is_inside: whether a function computes the value from the column, so that only the column's fields
        can be read from it (``max_by(address, at).zip``).
    """

    table: TableName
    path: FieldPath
    via: tuple[str, ...] = ()
    named_in: str = ""
    is_inside: bool = False


Origins = frozenset[ColumnOrigin]
NONE: Origins = frozenset()
RowOrigins = Mapping[str, Origins]
"""The fields of a struct that holds a whole row, by name in lower case."""


class Relation(Frozen):
    """A table, a view or a query.

    :param columns: in order, by name in lower case.
    :param is_complete: whether it has no other columns.
    :param is_sure: whether its name surely means it.
    :param rows: the columns that hold rows as structs (``struct(s.*) AS r``), with the fields of each.
    :param is_opaque: whether it may have columns of tables that the reader could not follow.
    :param behind: the tables whose columns an opaque relation of another file may have.
    """

    columns: Mapping[str, Origins] = field(default_factory=dict)
    is_complete: bool = False
    is_sure: bool = True
    rows: Mapping[str, RowOrigins] = field(default_factory=dict)
    is_opaque: bool = False
    behind: frozenset[TableName] = frozenset()

    def renamed(self, names: Sequence[str]) -> Relation:
        """With other names for its columns, by position."""
        if not names or not self.is_complete or len(names) != len(self.columns):
            return self if not names else Relation(dict.fromkeys(names, NONE), is_complete=True)
        new = dict(zip(self.columns, names, strict=True))
        rows = {new[name]: row for name, row in self.rows.items() if name in new}
        return replace(self, columns=dict(zip(names, self.columns.values(), strict=True)), rows=rows)

    def through(self, name: str) -> Relation:
        """As seen through a view or a model."""

        def seen(columns: RowOrigins) -> RowOrigins:
            return {c: frozenset(replace(o, via=(*o.via, name)) for o in os) for c, os in columns.items()}

        return replace(
            self, columns=seen(self.columns), rows={name: seen(row) for name, row in self.rows.items()}
        )

    def field(self, parts: Sequence[str], at: int) -> tuple[int, Origins, bool]:
        """What the column at an index of a dotted name holds, or a field of it where it holds a row.

        :returns: the index of the name that says so, what it holds, and whether that is sure.
        """
        row = self.rows.get(parts[at])
        if row is not None and len(parts) > at + 1:
            return at + 1, row.get(parts[at + 1], NONE), self.is_sure
        return at, self.columns.get(parts[at], NONE), self.is_sure

    @property
    def tables(self) -> frozenset[TableName]:
        """The declared tables whose columns it has or may have."""
        held = (*self.columns.values(), *(o for row in self.rows.values() for o in row.values()))
        return self.behind | {origin.table for origins in held for origin in origins}


UNKNOWN_RELATION = Relation()
"""A relation whose columns are unknown, and belong to no declared table."""
OPAQUE_RELATION = Relation(is_opaque=True)


def joined_relation(relations: Iterable[Relation]) -> Relation:
    """The columns of several relations beside each other; of one name, all origins."""
    columns: dict[str, Origins] = {}
    rows: dict[str, RowOrigins] = {}
    is_complete = is_sure = True
    is_opaque, behind = False, frozenset[TableName]()
    for relation in relations:
        for name, origins in relation.columns.items():
            columns[name] = columns.get(name, NONE) | origins
        for name, row in relation.rows.items():
            rows[name] = merged_rows(rows.get(name, {}), row)
        is_complete, is_sure = is_complete and relation.is_complete, is_sure and relation.is_sure
        is_opaque, behind = is_opaque or relation.is_opaque, behind | relation.behind
    return Relation(columns, is_complete, is_sure, rows, is_opaque, behind)


def merged_rows(left: RowOrigins, right: RowOrigins) -> RowOrigins:
    """The fields of both structs."""
    return {name: left.get(name, NONE) | right.get(name, NONE) for name in (*left, *right)}


def union_relation(left: Relation, right: Relation, *, by_name: bool) -> Relation:
    """A relation with the rows of both; columns have the names of the left one."""
    if by_name or not (left.is_complete and right.is_complete and len(left.columns) == len(right.columns)):
        return joined_relation((left, right))
    pairs = zip(left.columns.items(), right.columns.values(), strict=True)
    return replace(
        joined_relation((left, right)), columns={name: mine | theirs for (name, mine), theirs in pairs}
    )


class FromItem(Frozen):
    """A relation in ``FROM``.

    :param names: qualifiers of its columns: the alias, or the parts of its name.
    """

    names: tuple[str, ...]
    relation: Relation

    def qualified(self, parts: Sequence[str]) -> int:
        """How many of the parts call this source; 0 where they do not."""
        for count in range(min(len(self.names), len(parts) - 1), 0, -1):
            if self.names[-count:] == tuple(parts[:count]):
                return count
        return 0


class QueryScope(Frozen):
    """The names that are visible at a position of a query.

    :param aliases: output names of the projection, which ``ORDER BY`` and others may use.
    :param shadowed: parameters of a lambda.
    """

    sources: tuple[FromItem, ...] = ()
    outer: QueryScope | None = None
    ctes: Mapping[str, Relation] = field(default_factory=dict)
    aliases: frozenset[str] = frozenset()
    shadowed: frozenset[str] = frozenset()

    def find(self, parts: Sequence[str]) -> Iterator[tuple[int, Origins, bool]]:
        """Resolve a dotted name: the number of parts that name the source, the column's content, and whether
        that is certain.
        """
        if parts[0] in self.shadowed or (len(parts) == 1 and parts[0] in self.aliases):
            return
        for source in self.sources:
            if count := source.qualified(parts):
                yield source.relation.field(parts, count)
                return
        having = [s for s in self.sources if parts[0] in s.relation.columns]
        if having:
            others = [s for s in self.sources if s not in having]
            is_sure = len(having) == 1 and all(s.relation.is_complete for s in others)
            for source in having:
                at, origins, is_known = source.relation.field(parts, 0)
                yield at, origins, is_sure and is_known
        elif self.outer is not None and all(s.relation.is_complete for s in self.sources):
            yield from self.outer.find(parts)

    def is_opaque(self, parts: Sequence[str]) -> bool:
        """Whether a dotted name that :meth:`find` does not find may come from an opaque relation."""
        if parts[0] in self.shadowed or (len(parts) == 1 and parts[0] in self.aliases):
            return False
        for source in self.sources:
            if source.qualified(parts):
                return source.relation.is_opaque
        if any(parts[0] in source.relation.columns for source in self.sources):
            return False
        is_here = any(source.relation.is_opaque for source in self.sources)
        return is_here or (self.outer is not None and self.outer.is_opaque(parts))

    def row(self, parts: Sequence[str]) -> RowOrigins:
        """The columns of the source that a name means as a whole (``SELECT s FROM orders AS s``)."""
        if parts[0] in self.shadowed or any(parts[0] in s.relation.columns for s in self.sources):
            return {}
        for source in self.sources:
            if source.names[-len(parts) :] == tuple(parts):
                return source.relation.columns
        return {} if self.outer is None else self.outer.row(parts)
