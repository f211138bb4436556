"""A Python file in the search: its temporary views, its DataFrames, and the modules that it imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from icemigrate.iceberg.names import TableName
from icemigrate.sql_impact.affected import AffectedObject
from icemigrate.sql_impact.data_frames import Frames
from icemigrate.sql_impact.python_names import called
from icemigrate.sql_impact.python_sql import PythonModule
from icemigrate.sql_impact.python_uses import PythonUses
from icemigrate.sql_impact.query_uses import QueryReader, ResolvedTable, TableLookup
from icemigrate.sql_impact.relations import OPAQUE_RELATION, QueryScope, Relation, joined_relation
from icemigrate.sql_impact.sql_parser import ParsedStatement

if TYPE_CHECKING:
    from icemigrate.sql_impact.read_files import ReadFile

_MAKES_VIEW = frozenset(
    ("createOrReplaceTempView", "createTempView", "registerTempTable", "createOrReplaceGlobalTempView")
)
_RUNS_SQL = frozenset(("sql", "read_sql", "read_sql_query", "query", "read_database"))

_LAST_WORD = re.compile(r"\w+(?=\W*$)")
_MOST_RELATIONS = 100
"""How many relations a name is compared with one by one; those beyond are one, with the columns of all."""


class PythonSearch:
    """Finds the uses of one Python file.

    :param plain: what names of tables mean, without the temporary views of this file.
    :param queries: the SQL in it, with the expressions that have it.

    After :meth:`find`, ``left`` holds the places beyond the limit of uses, which were not looked at.
    """

    def __init__(
        self,
        module: PythonModule,
        plain: TableLookup,
        queries: Sequence[tuple[ast.expr, tuple[ParsedStatement, ...]]],
        path: str,
        affected_objects: Callable[[TableName], tuple[AffectedObject, ...]],
    ) -> None:
        self.module, self.path, self.affected_objects = module, path, affected_objects
        self.queries: dict[int, tuple[ParsedStatement, ...]] = {}
        for expression, statements in queries:
            self.queries.setdefault(id(expression), statements)
        self.views: dict[str, ast.expr] = {}
        self.left: list[int] = []
        for node in ast.walk(module.names.tree):
            if (
                isinstance(node, ast.Call)
                and called(node) in _MAKES_VIEW
                and isinstance(node.func, ast.Attribute)
            ):
                name = module.known_text(node.args[0] if node.args else None)
                if name is not None:
                    self.views[name.lower()] = node.func.value
        self.lookup = self.with_views(plain)
        self.frames = Frames(module, self.lookup, self._of_sql)

    def with_views(self, lookup: TableLookup) -> TableLookup:
        """What names of tables mean, with the temporary views of this file."""

        def find(parts: Sequence[str]) -> ResolvedTable:
            if len(parts) == 1 and parts[0] in self.views:
                frame = self.frames.frame(self.views[parts[0]])
                return ResolvedTable((OPAQUE_RELATION if frame is None else frame).through(parts[0]))
            return lookup(parts)

        return find

    def _of_sql(self, node: ast.AST) -> Relation | None:
        """What the query gives that a call runs; ``None`` for other calls."""
        statements = self.queries.get(id(node))
        if statements is None and isinstance(node, ast.Call) and called(node) in _RUNS_SQL:
            given = (*node.args, *(keyword.value for keyword in node.keywords))
            statements = next((self.queries[id(one)] for one in given if id(one) in self.queries), None)
        if not statements:
            return None
        from sqlglot import exp

        tree = statements[-1].tree
        if not isinstance(tree, exp.Query):
            return OPAQUE_RELATION
        return QueryReader(self.path, self.lookup, self.affected_objects).query(tree, QueryScope())

    def find(
        self, reader: QueryReader, reach: Sequence[Relation], mentioned: Sequence[Relation]
    ) -> list[Relation]:
        """Find the uses in DataFrame calls and names.

        :param reader: takes the uses, by their index in the file.
        :param reach: what the file's SQL reads, and what the files read that import it or that it imports.
        :param mentioned: the tables that the file mentions.
        :returns: what its DataFrames read.
        """
        frames = []
        for node in ast.walk(self.module.names.tree):
            if isinstance(node, ast.Call):
                frame = self.frames.frame(node)
                if frame is not None and frame.tables:
                    frames.append(frame)
        uses = PythonUses(self.module, self.frames, reader, _distinct([*reach, *frames]), mentioned)
        self.left = uses.find()
        return frames


def _distinct(relations: Sequence[Relation]) -> list[Relation]:
    found: list[Relation] = []
    rest: list[Relation] = []
    for relation in {id(one): one for one in relations}.values():
        if relation.tables and relation not in found:
            (found if len(found) < _MOST_RELATIONS else rest).append(relation)
    return [*found, *([joined_relation(rest)] if rest else ())]


def give_constants(file: ReadFile, modules: Mapping[str, Sequence[ReadFile]]) -> set[str]:
    """Give a file the texts of the constants that it imports.

    :param modules: the Python files by the names of their modules.
    :returns: the texts.
    """
    if not isinstance(file.module, PythonModule):
        return set()
    words = set(re.findall(r"\w+", file.module.text))
    found: dict[str, str] = {}
    for name, (module, imported) in file.module.names.imported.items():
        for source in (one for one in modules.get(module, ()) if one is not file):
            first = words if imported in {"", "*"} else {imported}
            for constant, text in _constants(source, first, words):
                if not imported:
                    found[f"{name}.{constant}"] = text
                elif imported == "*":
                    found[constant] = text
                else:
                    found[name + constant[len(imported) :]] = text
        for inner in (one for one in modules.get(imported, ()) if one is not file):
            found |= {f"{name}.{constant}": text for constant, text in _constants(inner, words, words)}
    if found:
        file.module.imported.update(found)
        file.read_again()
    return set(found.values())


def _constants(source: ReadFile, first: Set[str], words: Set[str]) -> Iterator[tuple[str, str]]:
    """The texts of a module that an importer can mean.

    :param first: the words that their names may begin with.
    :param words: the words of the importer, which has the last word of a name too.
    """
    known = source.module.constants if source.module is not None else {}
    for one in first & known.keys():
        for name, text in known[one]:
            last = _LAST_WORD.search(name)
            if name == one or last is None or last[0] in words:
                yield name, text
