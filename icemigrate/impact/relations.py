"""What SQL reads from: relations whose columns know which declared columns they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.frozen import Frozen, field, replace
from icemigrate.model.names import Path, TableName


class Origin(Frozen):
    """A declared column that a relation's column holds.

    :param via: views and models that it came through, the nearest last.
    :param named_in: the file that names it first on its way; empty where nothing but stars passed it on.
    """

    table: TableName
    path: Path
    via: tuple[str, ...] = ()
    named_in: str = ""


Origins = frozenset[Origin]
NONE: Origins = frozenset()


class Relation(Frozen):
    """A table, a view, a query.

    :param columns: in order, by name in lower case.
    :param is_complete: whether it has no other columns.
    :param is_sure: whether its name surely means it.
    """

    columns: Mapping[str, Origins] = field(default_factory=dict)
    is_complete: bool = False
    is_sure: bool = True

    def renamed(self, names: Sequence[str]) -> Relation:
        """With other names for its columns, by position."""
        if not names or not self.is_complete or len(names) != len(self.columns):
            return self if not names else Relation(dict.fromkeys(names, NONE), is_complete=True)
        return replace(self, columns=dict(zip(names, self.columns.values(), strict=True)))

    def through(self, name: str) -> Relation:
        """As seen through a view or a model."""
        seen = {c: frozenset(replace(o, via=(*o.via, name)) for o in os) for c, os in self.columns.items()}
        return replace(self, columns=seen)


UNKNOWN = Relation()


def joined(relations: Iterable[Relation]) -> Relation:
    """The columns of several relations beside each other; of one name, all origins."""
    columns: dict[str, Origins] = {}
    is_complete = is_sure = True
    for relation in relations:
        for name, origins in relation.columns.items():
            columns[name] = columns.get(name, NONE) | origins
        is_complete, is_sure = is_complete and relation.is_complete, is_sure and relation.is_sure
    return Relation(columns, is_complete, is_sure)


def united(left: Relation, right: Relation, *, by_name: bool) -> Relation:
    """The rows of both: columns are called as on the left."""
    if by_name or not (left.is_complete and right.is_complete and len(left.columns) == len(right.columns)):
        return joined((left, right))
    pairs = zip(left.columns.items(), right.columns.values(), strict=True)
    return Relation({name: mine | theirs for (name, mine), theirs in pairs}, True)


class Source(Frozen):
    """A relation in ``FROM``.

    :param names: what may stand before its columns: the alias, or the parts of its name.
    """

    names: tuple[str, ...]
    relation: Relation

    def qualified(self, parts: Sequence[str]) -> int:
        """How many of the parts call this source; 0 where they do not."""
        for count in range(min(len(self.names), len(parts) - 1), 0, -1):
            if self.names[-count:] == tuple(parts[:count]):
                return count
        return 0


class Scope(Frozen):
    """What a name may mean at a place of a query.

    :param aliases: names that the projection gives, which ``ORDER BY`` and others may say.
    :param shadowed: parameters of a lambda.
    """

    sources: tuple[Source, ...] = ()
    outer: Scope | None = None
    ctes: Mapping[str, Relation] = field(default_factory=dict)
    aliases: frozenset[str] = frozenset()
    shadowed: frozenset[str] = frozenset()

    def find(self, parts: Sequence[str]) -> Iterator[tuple[int, Origins, bool]]:
        """What a dotted name may mean: how many parts call the source, what the column holds, and whether
        that is sure."""
        if parts[0] in self.shadowed or (len(parts) == 1 and parts[0] in self.aliases):
            return
        for source in self.sources:
            if count := source.qualified(parts):
                yield count, source.relation.columns.get(parts[count], NONE), source.relation.is_sure
                return
        having = [s for s in self.sources if parts[0] in s.relation.columns]
        if having:
            others = [s for s in self.sources if s not in having]
            is_sure = len(having) == 1 and all(s.relation.is_complete for s in others)
            for source in having:
                relation = source.relation
                yield 0, relation.columns[parts[0]], is_sure and relation.is_sure
        elif self.outer is not None and all(s.relation.is_complete for s in self.sources):
            yield from self.outer.find(parts)
