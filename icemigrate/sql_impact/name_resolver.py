"""What the names of tables mean in the files of a search: declared tables, views, and models of dbt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName
from icemigrate.sql_impact.affected import AffectedObject, DeclaredTables
from icemigrate.sql_impact.jinja_values import REF, SOURCE, THIS, UNKNOWN
from icemigrate.sql_impact.query_uses import QueryReader, ResolvedTable
from icemigrate.sql_impact.relations import (
    OPAQUE_RELATION,
    UNKNOWN_RELATION,
    QueryScope,
    Relation,
    joined_relation,
)
from icemigrate.sql_impact.script import Language, Parts, Script
from icemigrate.sql_impact.sql_parser import ParsedStatement
from icemigrate.sql_impact.statement_uses import defined_relation

if TYPE_CHECKING:
    from icemigrate.sql_impact.read_files import ReadFile

_REFERENCE = re.compile(r"(branch|tag)_.+|(snapshot_id|at_timestamp)_[0-9]+")
"""What Iceberg's Spark catalog takes behind a table's name (`Spark3Util.CatalogAndIdentifier`)."""

_PYTHON_MODEL = re.compile(r"^def model\(\s*dbt\b", re.MULTILINE)
"""A model of dbt in Python, which may give every column of what it reads."""


class Lookup(Frozen):
    """What a name means in a statement."""

    resolver: NameResolver
    script: Script
    namespace: Parts

    def __call__(self, parts: Sequence[str]) -> ResolvedTable:
        return self.resolver.named(tuple(parts), self)


class DbtNames(Frozen):
    """What dbt calls tables.

    :param sources: the table of a `source`, by the names of the source and of its table.
    :param relations: the model that a relation is, by the namespace and the name of the relation.
    """

    sources: Mapping[tuple[str, str], Parts]
    relations: Mapping[Parts, str]


class NameResolver:
    """All that names may mean."""

    def __init__(self, declared_tables: DeclaredTables, dbt: DbtNames) -> None:
        self.declared_tables, self.dbt = declared_tables, dbt
        self.files: list[ReadFile] = []
        self._unread: dict[Parts, frozenset[TableName]] = {}
        self._tables: dict[Parts, TableName] = dict(declared_tables.names())
        self._leaves: dict[str, list[Parts]] = {}
        for name in self._tables:
            self._leaves.setdefault(name[-1], []).append(name)
        self._affected: dict[TableName, list[AffectedObject]] = {}
        for affected in declared_tables.affected_objects:
            self._affected.setdefault(affected.table, []).append(affected)
        self._definitions: dict[Parts, list[tuple[ParsedStatement, Lookup]]] = {}
        self._compiled: dict[Parts, tuple[ReadFile, Lookup]] = {}
        self._known: dict[Parts, Relation] = {}

    def relation(self, table: TableName) -> Relation:
        """The columns of a declared table."""
        return self.declared_tables.relation(table, is_sure=False)

    def affected_objects(self, table: TableName) -> tuple[AffectedObject, ...]:
        """The columns of a table that migrations change, and the table itself."""
        return tuple(self._affected.get(table, ()))

    def mentions_affected(self, text: str) -> bool:
        """Whether a text has the name of a changed object."""
        words = set(re.findall(r"\w+", text.lower()))
        tables = {name[-1] for name, table in self._tables.items() if table in self._affected}
        return bool(words & (tables | {key[-1] for key in self._definitions}))

    def tables_in(self, text: str) -> frozenset[TableName]:
        """The changed tables that a text names, directly or by the name of a view or a model."""
        words = set(re.findall(r"\w+", text.lower()))
        found = {
            table for name, table in self._tables.items() if table in self._affected and name[-1] in words
        }
        for key in self._definitions:
            if key[-1] in words:
                found |= self._definition(key, key[-1]).tables
        return frozenset(found)

    def tables_mentioned(self, words: Set[str], texts: Set[str]) -> frozenset[TableName]:
        """The changed tables that code mentions in any form: quoted, in parts, in a path.

        :param words: all words of the code.
        :param texts: whole string literals, which may be the name of a table without its namespace.
        """
        return frozenset(
            table
            for name, table in self._tables.items()
            if table in self._affected and (name[-1] in texts or set(name[-2:]) <= words)
        )

    def relations_mentioned(self, text: str) -> list[Relation]:
        """The tables and models that a text with code mentions."""
        words = set(re.findall(r"\w+", text.lower()))
        tables = self.tables_mentioned(words, frozenset())
        models = [self._definition(key, key[-1]) for key in self._definitions if key[-1] in words]
        return [*map(self.relation, sorted(tables, key=str)), *models]

    def take(self, file: ReadFile) -> set[str]:
        """Take the views and models that a file defines.

        :returns: their names.
        """
        from sqlglot import exp

        self.files.append(file)
        names: set[str] = set()
        script = file.script
        models = [(REF, name.lower()) for name in file.model_names]
        for statement, lookup in file.lookups(self):
            tree = statement.tree
            keys: Sequence[Parts]
            if isinstance(tree, exp.Query) and models:
                keys = models
            elif isinstance(tree, (exp.Create, exp.Cache)) and tree.args.get("expression") is not None:
                target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
                if not isinstance(target, exp.Table):
                    continue
                keys = [self._defined_as(tuple(part.name.lower() for part in target.parts), lookup)]
            else:
                continue
            for key in keys:
                self._definitions.setdefault(key, []).append((statement, lookup))
                names.add(key[-1])
        is_python = (
            script.language is Language.PYTHON and _PYTHON_MODEL.search(script.source.text) is not None
        )
        if is_python or (models and file.unread):
            for key in models or [(REF, script.stem.lower())]:
                self._unread[key] = self.tables_in(
                    script.source.text if is_python else " ".join(one.text for one in file.unread)
                )
                names.add(key[-1])
        for key in models if len(models) == 1 and file.compiled else ():
            self._compiled[key] = (file, Lookup(self, script, script.namespace))
            names.add(key[-1])
        names |= {relation[-1] for relation, model in self.dbt.relations.items() if model in names}
        return names

    @staticmethod
    def _defined_as(parts: Parts, lookup: Lookup) -> Parts:
        if len(parts) > 1:
            return parts[-2:]
        # A view without a namespace is known in its file, where nothing says which one it is in.
        return (*(lookup.namespace or (lookup.script.source.path,)), *parts)

    def named(self, parts: Parts, lookup: Lookup) -> ResolvedTable:
        """What a name means."""
        if any(UNKNOWN in part for part in parts):
            return ResolvedTable(OPAQUE_RELATION)
        if parts[0] == THIS:
            name = lookup.script.stem.lower()
            return ResolvedTable(self._definition((REF, name), name))
        if parts[0] == REF:
            return ResolvedTable(self._definition(parts, parts[-1]))
        if parts[0] == SOURCE and len(parts) == 3:
            parts = self.dbt.sources.get((parts[1], parts[2]), parts[1:])
        if len(parts) > 2 and _REFERENCE.fullmatch(parts[-1]):
            parts = parts[:-1]
        if len(parts) == 1:
            return self._unqualified(parts[0], lookup)
        for start in range(len(parts) - 1):
            table = self._tables.get(parts[start:])
            if table is not None:
                return self._table(table)
        parts = parts[-2:]
        if parts not in self._definitions and (model := self.dbt.relations.get(parts)) is not None:
            return ResolvedTable(self._definition((REF, model), model))
        return ResolvedTable(self._definition(parts, ".".join(parts)))

    def _unqualified(self, name: str, lookup: Lookup) -> ResolvedTable:
        in_file = self._definition((lookup.script.source.path, name), name)
        if in_file is not UNKNOWN_RELATION:
            return ResolvedTable(in_file)
        if lookup.namespace:
            return self.named((*lookup.namespace, name), lookup)
        tables = {self._tables[full] for full in self._leaves.get(name, ())}
        if len(tables) != 1:
            return ResolvedTable(UNKNOWN_RELATION)
        return self._table(tables.pop(), is_sure=False)

    def _table(self, table: TableName, *, is_sure: bool = True) -> ResolvedTable:
        return ResolvedTable(
            self.declared_tables.relation(table, is_sure=is_sure),
            table,
            tuple(affected for affected in self.affected_objects(table) if not affected.path),
        )

    def _definition(self, key: Parts, shown: str) -> Relation:
        """What a view or a model gives, computed when it is asked for."""
        is_defined = key in self._definitions or key in self._unread or key in self._compiled
        if key in self._known or not is_defined:
            return self._known.get(key, UNKNOWN_RELATION)
        # One that reads itself, as incremental models do, knows nothing of itself.
        self._known[key] = UNKNOWN_RELATION
        given = list(self._given(self._definitions.get(key, ())))
        if key in self._unread:
            given.append(Relation(is_opaque=True, behind=self._unread[key]))
        if key in self._compiled:
            given = [self._with_compiled(joined_relation(given), *self._compiled[key])]
        self._known[key] = joined_relation(given).through(shown)
        return self._known[key]

    def _with_compiled(self, relation: Relation, file: ReadFile, lookup: Lookup) -> Relation:
        """The columns of a model, also those that its compiled code shows."""
        compiled = joined_relation(self._given((one, lookup) for one in file.compiled))
        whole = joined_relation((relation, compiled))
        is_one = file.template is None or len(file.template.readings) == 1
        if compiled.is_opaque or not compiled.is_complete or not is_one:
            return whole
        # Where nothing depends on a condition, the compiled code has all columns.
        return replace(whole, is_complete=True, is_opaque=False, behind=frozenset())

    def _given(self, defined: Iterable[tuple[ParsedStatement, Lookup]]) -> Iterable[Relation]:
        from sqlglot import exp

        for statement, lookup in defined:
            reader = QueryReader(lookup.script.source.path, lookup, self.affected_objects)
            tree = statement.tree
            is_query = isinstance(tree, exp.Query)
            try:
                yield reader.query(tree, QueryScope()) if is_query else defined_relation(reader, tree)
            except RecursionError:
                yield Relation(is_opaque=True, behind=self.tables_in(statement.text))
