"""Files of SQL, searched for uses of what is at stake, through views and models of other files.

A file is parsed only where it says a name at stake: of a table, or of a view or model that a file which says
one defines, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from icemigrate.declare.source import Source
from icemigrate.frozen import Frozen, replace
from icemigrate.impact import jinja, python_sql
from icemigrate.impact.parsing import Statement, statements
from icemigrate.impact.reading import Named, Reader, Use
from icemigrate.impact.relations import UNKNOWN, Relation
from icemigrate.impact.stakes import Lake, Stake
from icemigrate.impact.statements import defined_relation, read_statement
from icemigrate.impact.text import Fragment
from icemigrate.model.names import TableName

Parts = tuple[str, ...]
_REFERENCE = re.compile(r"(branch|tag)_.+|(snapshot_id|at_timestamp)_[0-9]+")
"""What Iceberg's Spark catalog takes behind a table's name (`Spark3Util.CatalogAndIdentifier`)."""


@dataclass(frozen=True, slots=True)
class Script:
    """A file that holds SQL.

    :param stem: its name without the extension, which is what `dbt` calls a model.
    :param is_python: whether the SQL stands in string literals.
    :param namespace: what a table without one belongs to; empty where nobody said it.
    """

    source: Source = field(repr=False)
    stem: str
    is_python: bool
    dialect: str
    namespace: Parts = ()


class Found(Frozen):
    """What is used in one file, by the index in its text; and what of it could not be read."""

    script: Script
    uses: tuple[tuple[int, Use], ...]
    unread: tuple[Statement, ...]


def search(
    scripts: Sequence[Script], lake: Lake, dbt_sources: Mapping[tuple[str, str], Parts]
) -> Iterator[Found]:
    """What of the lake is used where.

    :param dbt_sources: the table that a `source` of dbt is, by its name and its table's.
    """
    names = {name[-1] for name, table in lake.names() if any(s.table == table for s in lake.stakes)}
    names |= {table for (_, table), parts in dbt_sources.items() if parts[-1] in names}
    world = _World(lake, dbt_sources)
    waiting = list(scripts)
    while names:
        said = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(names)))})(?!\w)", re.IGNORECASE)
        now = [one for one in waiting if said.search(one.source.text)]
        waiting = [one for one in waiting if one not in now]
        names = {name for one in now for name in world.take(one)} - names
    for file in world.files:
        yield file.found(world)


@dataclass
class _File:
    """A file that is read."""

    script: Script

    @cached_property
    def readings(self) -> tuple[tuple[Statement, ...], ...]:
        """The statements; of a template, of each way to read it."""
        text, dialect = self.script.source.text, self.script.dialect
        fragments: list[list[Fragment]]
        if self.script.is_python:
            try:
                fragments = [list(python_sql.fragments(text))]
            except python_sql.NoPython as error:
                return ((Statement(Fragment.whole(text), text, None, f"no Python: {error}", error.at),),)
        elif jinja.is_template(text):
            fragments = [[one] for one in jinja.readings(text)]
        else:
            fragments = [[Fragment.whole(text)]]
        return tuple(tuple(s for one in some for s in statements(one, dialect)) for some in fragments)

    @property
    def statements(self) -> Iterator[Statement]:
        """Those that were read."""
        return (s for reading in self.readings for s in reading if s.tree is not None)

    def found(self, world: _World) -> Found:
        """The uses, and what could not be read and says a name at stake."""
        uses: dict[tuple[int, Stake], Use] = {}
        too_deep: list[Statement] = []
        for statement, lookup in self.lookups(world):
            reader = Reader(self.script.source.path, lookup, world.stakes)
            try:
                read_statement(reader, statement.tree)
            except RecursionError:
                too_deep.append(replace(statement, why="it is nested too deeply"))
            for use in reader.uses.values():
                uses.setdefault((statement.fragment.index(use.at), use.stake), use)
        # One way to read a template is enough.
        ways = [[s for s in reading if s.tree is None] for reading in self.readings]
        unread = [*min(ways, key=len, default=[]), *too_deep]
        places = sorted(((at, use) for (at, _), use in uses.items()), key=lambda pair: pair[0])
        return Found(self.script, tuple(places), tuple(s for s in unread if world.is_told_of(s.text)))

    def lookups(self, world: _World) -> Iterator[tuple[Statement, _Lookup]]:
        """Each statement with what names mean in it: `USE` holds for those behind it."""
        from sqlglot import exp

        namespace = self.script.namespace
        for statement in self.statements:
            if isinstance(statement.tree, exp.Use) and isinstance(statement.tree.this, exp.Table):
                namespace = tuple(part.name.lower() for part in statement.tree.this.parts)[-1:]
            yield statement, _Lookup(world, self.script, namespace)


class _Lookup(Frozen):
    """What a name means in a statement."""

    world: _World
    script: Script
    namespace: Parts

    def __call__(self, parts: Sequence[str]) -> Named:
        return self.world.named(tuple(parts), self)


class _World:
    """All that names may mean."""

    def __init__(self, lake: Lake, dbt_sources: Mapping[tuple[str, str], Parts]) -> None:
        self.lake, self.dbt_sources = lake, dbt_sources
        self.files: list[_File] = []
        self._tables: dict[Parts, TableName] = dict(lake.names())
        self._leaves: dict[str, list[Parts]] = {}
        for name in self._tables:
            self._leaves.setdefault(name[-1], []).append(name)
        self._stakes: dict[TableName, list[Stake]] = {}
        for stake in lake.stakes:
            self._stakes.setdefault(stake.table, []).append(stake)
        self._definitions: dict[Parts, list[tuple[Statement, _Lookup]]] = {}
        self._known: dict[Parts, Relation] = {}

    def stakes(self, table: TableName) -> tuple[Stake, ...]:
        """What is at stake in a table."""
        return tuple(self._stakes.get(table, ()))

    def is_told_of(self, text: str) -> bool:
        """Whether a text says a name of something at stake."""
        words = set(re.findall(r"\w+", text.lower()))
        tables = {name[-1] for name, table in self._tables.items() if table in self._stakes}
        return bool(words & (tables | {key[-1] for key in self._definitions}))

    def take(self, script: Script) -> set[str]:
        """Read a file.

        :returns: the names of the views and models that it defines.
        """
        from sqlglot import exp

        file = _File(script)
        self.files.append(file)
        names: set[str] = set()
        for statement, lookup in file.lookups(self):
            tree = statement.tree
            key: Parts
            if isinstance(tree, exp.Query) and not script.is_python:
                key = (jinja.REF, script.stem.lower())
            elif isinstance(tree, (exp.Create, exp.Cache)) and tree.args.get("expression") is not None:
                target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
                if not isinstance(target, exp.Table):
                    continue
                key = self._defined_as(tuple(part.name.lower() for part in target.parts), lookup)
            else:
                continue
            self._definitions.setdefault(key, []).append((statement, lookup))
            names.add(key[-1])
        return names

    @staticmethod
    def _defined_as(parts: Parts, lookup: _Lookup) -> Parts:
        if len(parts) > 1:
            return parts[-2:]
        # A view without a namespace is known in its file, where nothing says which one it is in.
        return (*(lookup.namespace or (lookup.script.source.path,)), *parts)

    def named(self, parts: Parts, lookup: _Lookup) -> Named:
        """What a name means."""
        if parts[0] == jinja.REF:
            return Named(self._definition(parts, parts[-1]))
        if parts[0] == jinja.SOURCE and len(parts) == 3:
            parts = self.dbt_sources.get((parts[1], parts[2]), parts[1:])
        if len(parts) > 2 and _REFERENCE.fullmatch(parts[-1]):
            parts = parts[:-1]
        if len(parts) == 1:
            return self._unqualified(parts[0], lookup)
        for start in range(len(parts) - 1):
            table = self._tables.get(parts[start:])
            if table is not None:
                return self._table(table)
        return Named(self._definition(parts[-2:], ".".join(parts[-2:])))

    def _unqualified(self, name: str, lookup: _Lookup) -> Named:
        in_file = self._definition((lookup.script.source.path, name), name)
        if in_file is not UNKNOWN:
            return Named(in_file)
        if lookup.namespace:
            return self.named((*lookup.namespace, name), lookup)
        tables = {self._tables[full] for full in self._leaves.get(name, ())}
        if len(tables) != 1:
            return Named(UNKNOWN)
        return self._table(tables.pop(), is_sure=False)

    def _table(self, table: TableName, *, is_sure: bool = True) -> Named:
        return Named(
            self.lake.relation(table, is_sure=is_sure),
            table,
            tuple(stake for stake in self.stakes(table) if not stake.path),
        )

    def _definition(self, key: Parts, shown: str) -> Relation:
        """What a view or a model gives, computed when it is asked for."""
        if key in self._known or key not in self._definitions:
            return self._known.get(key, UNKNOWN)
        # One that reads itself, as incremental models do, knows nothing of itself.
        self._known[key] = UNKNOWN
        self._known[key] = self._given(self._definitions[key]).through(shown)
        return self._known[key]

    def _given(self, defined: Iterable[tuple[Statement, _Lookup]]) -> Relation:
        from sqlglot import exp

        from icemigrate.impact.relations import Scope, joined

        given = []
        for statement, lookup in defined:
            reader = Reader(lookup.script.source.path, lookup, self.stakes)
            tree = statement.tree
            is_query = isinstance(tree, exp.Query)
            try:
                given.append(reader.query(tree, Scope()) if is_query else defined_relation(reader, tree))
            except RecursionError:
                given.append(UNKNOWN)
        return joined(given)
