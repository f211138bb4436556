"""A file → the statements of its SQL, and the uses in all of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.sql_impact.affected import AffectedObject
from icemigrate.sql_impact.compiled_uses import find_compiled_uses
from icemigrate.sql_impact.ddl_uses import find_command_uses, find_unresolved_uses
from icemigrate.sql_impact.dynamic_sql import find_run_uses, runs_texts, words_in_literals
from icemigrate.sql_impact.jinja_templates import Macro, Template, is_template, read_template
from icemigrate.sql_impact.jinja_values import REF, UNKNOWN, VARIABLE
from icemigrate.sql_impact.name_resolver import Lookup, NameResolver
from icemigrate.sql_impact.notebooks import (
    Cells,
    databricks_cells,
    is_databricks,
    jupyter_cells,
    with_commands,
)
from icemigrate.sql_impact.python_file import PythonSearch
from icemigrate.sql_impact.python_sql import NoPython, PythonModule
from icemigrate.sql_impact.query_uses import QueryReader, ResolvedTable, SqlUse, TableLookup
from icemigrate.sql_impact.relations import UNKNOWN_RELATION, Relation
from icemigrate.sql_impact.script import FileUses, Language, Script
from icemigrate.sql_impact.sql_parser import ParsedStatement, parse_statements
from icemigrate.sql_impact.sql_source import FragmentBuilder, SqlFragment
from icemigrate.sql_impact.statement_uses import read_statement
from icemigrate.sql_impact.template_uses import find_macro_uses, find_returned_uses, find_template_uses
from icemigrate.sql_impact.yaml_uses import YamlUses

_OTHER_CELL = "cells in this language are not searched"
_OTHER_FILE = "files of this kind are not searched"
_LONG_LOOPS = "its loops give too much text"
_ALONE = re.compile(rf"(?<![\w.])(?:{UNKNOWN}|{VARIABLE})(?![\w.(])")


@dataclass
class ReadFile:
    """A file that is read.

    :param uses: what is found in it, by the index in its text.
    """

    script: Script
    uses: dict[tuple[int, AffectedObject], SqlUse] = field(default_factory=dict)
    too_deep: list[ParsedStatement] = field(default_factory=list)
    beyond_limit: list[ParsedStatement] = field(default_factory=list)
    unread_cells: list[ParsedStatement] = field(default_factory=list)

    @cached_property
    def template(self) -> Template | None:
        """The template that it is; ``None`` for others."""
        text = self.script.source.text
        is_sql = self.script.language is Language.SQL
        return read_template(text, self.script.variables) if is_sql and is_template(text) else None

    @cached_property
    def cells(self) -> Cells:
        """The parts in Python and SQL of a file that is not SQL from end to end."""
        text, language = self.script.source.text, self.script.language
        if language is Language.NOTEBOOK:
            return jupyter_cells(text)
        is_python = language is Language.PYTHON
        cells = databricks_cells(text, is_python=is_python) if is_databricks(text) else Cells()
        if is_python:
            cells.python.append(SqlFragment.whole(text))
        return cells

    @cached_property
    def code(self) -> tuple[PythonModule, SqlFragment] | None:
        """The Python in it, and where that is in the file; ``None`` where there is none that can be read."""
        self.unread_cells = [_unread_cell(one, self.cells.why or _OTHER_CELL) for one in self.cells.others]
        whole = _one_below_the_other(self.cells.python)
        if not whole.text:
            return None
        try:
            return PythonModule(whole.text), whole
        except NoPython as error:
            first = error
        readable: list[SqlFragment] = []
        for cell in self.cells.python:
            try:
                PythonModule(cell.text)
                readable.append(cell)
            except NoPython as error:
                why = f"it is not Python: {error if len(self.cells.python) > 1 else first}"
                self.unread_cells.append(_unread_cell(cell, why, error.at))
        whole = _one_below_the_other(readable)
        return (PythonModule(whole.text), whole) if whole.text else None

    @property
    def module(self) -> PythonModule | None:
        """The Python in it; ``None`` where there is none that can be read."""
        return None if self.code is None else self.code[0]

    @cached_property
    def yaml(self) -> YamlUses | None:
        """The YAML that it is; ``None`` for others.  Its uses are found by another reader."""
        is_yaml = self.script.language is Language.YAML
        reader = QueryReader(self.script.source.path, lambda _: ResolvedTable(UNKNOWN_RELATION), lambda _: ())
        return YamlUses(self.script.source, reader, self.script.variables) if is_yaml else None

    @cached_property
    def queries(self) -> list[tuple[ast.expr, tuple[ParsedStatement, ...]]]:
        """The statements of the SQL in Python, with the expressions that have it."""
        if self.code is None:
            return []
        module, whole = self.code
        dialect = "spark" if self.script.language is Language.SQL else self.script.dialect
        return [
            (node, tuple(parse_statements(sql.inside(whole), dialect))) for node, sql in module.fragments()
        ]

    def read_again(self) -> None:
        """Read the SQL again, since constants that the file imports have become known."""
        for name in ("queries", "readings", "unread"):
            self.__dict__.pop(name, None)

    @property
    def model_names(self) -> list[str]:
        """The models or snapshots of dbt that it may define."""
        if self.script.language is not Language.SQL:
            return []
        return (self.template.snapshots if self.template else []) or [self.script.stem]

    @cached_property
    def readings(self) -> tuple[tuple[ParsedStatement, ...], ...]:
        """The statements; of a template, of each way to read it."""
        text, dialect = self.script.source.text, self.script.dialect
        language = self.script.language
        inner = [s for sql in self.cells.sql for s in parse_statements(sql, dialect)]
        inner += [statement for _, some in self.queries for statement in some]
        inner += self.unread_cells
        if language in (Language.PYTHON, Language.NOTEBOOK):
            return (tuple(inner),)
        if language is Language.YAML:
            assert self.yaml is not None
            if not self.yaml.is_readable:
                return ((_unread_file(text, "it is not YAML"),),)
            found = [s for sql in self.yaml.statements() for s in parse_statements(sql, dialect)]
            if (second := self.yaml.second) is not None:
                start = self.yaml.starts[second.line - 1]
                rest = SqlFragment(text[start:], range(start, len(text)))
                found.append(_unread_cell(rest, "only the first document of a YAML file is searched"))
            return (tuple(found),)
        if language is Language.OTHER:
            return ((_unread_file(text, _OTHER_FILE),),)
        if self.template is not None:
            inner += [_unread_file(text, _LONG_LOOPS)] if self.template.is_cut else ()
            return tuple((*_best(one, dialect), *inner) for one in self.template.readings)
        whole = SqlFragment.whole(with_commands(text) if is_databricks(text) else text)
        return ((*parse_statements(whole, dialect), *inner),)

    @cached_property
    def blocks(self) -> tuple[ParsedStatement, ...]:
        """The statements that a template gives to names and macros."""
        blocks = self.template.blocks if self.template is not None else ()
        return tuple(s for one in blocks for s in parse_statements(one, self.script.dialect))

    @cached_property
    def compiled(self) -> tuple[ParsedStatement, ...]:
        """The statements of the code that dbt compiled of it; none where one of them cannot be read."""
        script = self.script
        if not script.compiled:
            return ()
        found = tuple(parse_statements(SqlFragment.whole(script.compiled), script.compiled_dialect))
        return found if all(one.tree is not None for one in found) else ()

    @cached_property
    def unread(self) -> Sequence[ParsedStatement]:
        """What cannot be read.  One way to read a template is enough."""
        ways = [[s for s in reading if s.tree is None and not s.words] for reading in self.readings]
        return min(ways, key=len, default=[])

    def lookups(self, resolver: NameResolver) -> Iterator[tuple[ParsedStatement, Lookup]]:
        """Each statement with what names mean in it: `USE` holds for those behind it."""
        from sqlglot import exp

        namespace = self.script.namespace
        for statement in (s for reading in self.readings for s in reading):
            if isinstance(statement.tree, exp.Use) and isinstance(statement.tree.this, exp.Table):
                namespace = tuple(part.name.lower() for part in statement.tree.this.parts)[-1:]
            yield statement, Lookup(resolver, self.script, namespace)

    def search(self, resolver: NameResolver, reach: Sequence[Relation] = ()) -> list[Relation]:
        """Find the uses.

        :param reach: what the files read that import this one.
        :returns: what the file reads.
        """
        statements: list[tuple[ParsedStatement, TableLookup]] = [*self.lookups(resolver)]
        plain = Lookup(resolver, self.script, self.script.namespace)
        python, mentioned = None, frozenset[TableName]()
        self.too_deep.clear()
        if self.module is not None:
            python = PythonSearch(
                self.module, plain, self.queries, self.script.source.path, resolver.affected_objects
            )
            statements = [(one, python.with_views(lookup)) for one, lookup in statements]
        statements += [(block, plain) for block in self.blocks]
        readers = [(one, self._read(one, lookup, resolver)) for one, lookup in statements]
        relations = [relation for _, reader in readers for relation in reader.relations]
        self._read_texts(readers, resolver)
        whole = QueryReader(self.script.source.path, plain, resolver.affected_objects)
        if self.template is not None:
            relations += [plain(parts).relation for parts in _relations(self.template)]
            output = plain((REF, self.model_names[0].lower())).relation
            find_template_uses(whole, self.template, output, relations, resolver.relations_mentioned)
            for block in self.blocks:
                if block.tree is None and not block.words:
                    self.too_deep.append(block)
        if python is not None:
            inside = QueryReader(self.script.source.path, plain, resolver.affected_objects)
            mentioned = resolver.tables_mentioned(*python.module.mentions())
            named = [resolver.relation(table) for table in sorted(mentioned, key=str)]
            relations += self._search_python(python, inside, [*relations, *reach], named)
        if self.yaml is not None:
            self.yaml.reader = whole
            self.yaml.find(
                [resolver.relation(table) for table in resolver.tables_in(self.script.source.text)]
            )
        tables: set[TableName] = {table for _, reader in readers for table in reader.tables} | mentioned
        for one, reader in readers:
            texts = words_in_literals([one]) if reader.unresolved else set[str]()
            find_unresolved_uses(reader, tables | resolver.tables_mentioned(texts, frozenset()))
        for one, reader in readers:
            self.keep(
                ((one.fragment.index(at), affected), use) for (at, affected), use in reader.uses.items()
            )
        self.keep(whole.uses.items())
        if self.template is not None and self.compiled:
            compiled = [self._read(one, plain, resolver) for one in self.compiled]
            self.keep(find_compiled_uses(self.template, self.uses, compiled))
            relations += [relation for reader in compiled for relation in reader.relations]
        return relations

    def _read_texts(
        self, readers: Sequence[tuple[ParsedStatement, QueryReader]], resolver: NameResolver
    ) -> None:
        """Find the uses in texts that SQL runs."""
        statements = [one for one, _ in readers]
        named: list[Relation] | None = None
        if runs_texts(statements):
            tables = resolver.tables_mentioned(words_in_literals(statements), frozenset())
            tables |= {table for _, reader in readers for table in reader.tables}
            named = [resolver.relation(table) for table in sorted(tables, key=str)]
        for one, reader in readers:
            try:
                find_run_uses(reader, one, self.script.dialect, named)
            except RecursionError:
                self.too_deep.append(replace(one, why="it is nested too deeply"))

    def _search_python(
        self,
        python: PythonSearch,
        reader: QueryReader,
        reach: Sequence[Relation],
        mentioned: Sequence[Relation],
    ) -> list[Relation]:
        """Find the uses in DataFrame calls and names; what they read."""
        assert self.code is not None
        code = self.code[1]
        relations = []
        try:
            relations = python.find(reader, reach, mentioned)
        except RecursionError:
            self.too_deep.append(_unread_cell(code, "it is nested too deeply"))
        self.keep(((code.index(at), affected), use) for (at, affected), use in reader.uses.items())
        if python.left:
            count = len(python.left)
            why = f"{len(reader.uses):,} uses are reported, and {count:,} more places name a changed column"
            self.beyond_limit = [_unread_cell(code, why, python.left[0])]
        return relations

    def _read(self, statement: ParsedStatement, lookup: TableLookup, resolver: NameResolver) -> QueryReader:
        reader = QueryReader(self.script.source.path, lookup, resolver.affected_objects)
        try:
            if statement.words:
                find_command_uses(reader, statement)
            elif statement.tree is not None:
                read_statement(reader, statement.tree)
        except RecursionError:
            self.too_deep.append(replace(statement, why="it is nested too deeply"))
        return reader

    def keep(self, found: Iterable[tuple[tuple[int, AffectedObject], SqlUse]]) -> None:
        """Keep uses; of two at one place, the one that is sure."""
        for key, use in found:
            known = self.uses.get(key)
            if known is None or (use.is_sure and not known.is_sure):
                self.uses[key] = use

    def found(self, resolver: NameResolver) -> FileUses:
        """The uses in order, and what could not be read and names a changed object."""
        places = sorted(((at, use) for (at, _), use in self.uses.items()), key=lambda pair: pair[0])
        unread = (s for s in (*self.unread, *self.too_deep) if self._may_use(s, resolver))
        return FileUses(self.script, tuple(places), (*unread, *self.beyond_limit))

    def _may_use(self, statement: ParsedStatement, resolver: NameResolver) -> bool:
        """Whether unreadable text may use a changed column or table."""
        if self.script.language is not Language.OTHER and statement.why != _OTHER_CELL:
            return resolver.mentions_affected(statement.text)
        # Of a file of another kind, the names of a table and of its column have to be there.
        words = set(re.findall(r"\w+", statement.text.lower()))
        stakes = [s for table in resolver.tables_in(statement.text) for s in resolver.affected_objects(table)]
        return any(
            {*(part.lower() for part in s.table.namespace), *(s.path[-1:] and (s.path[-1].lower(),))} <= words
            for s in stakes
        )


def _unread_file(text: str, why: str) -> ParsedStatement:
    return ParsedStatement(SqlFragment.whole(text), text, None, why, 0, is_sql=False)


def _unread_cell(cell: SqlFragment, why: str, at: int = 0) -> ParsedStatement:
    return ParsedStatement(cell, cell.text, None, why, cell.index(at), is_sql=False)


def _one_below_the_other(cells: Sequence[SqlFragment]) -> SqlFragment:
    """The cells of a notebook as one file."""
    if len(cells) == 1:
        return cells[0]
    out = FragmentBuilder()
    for cell in cells:
        out.append(cell)
        out.put("\n", cell.index(len(cell.text)))
    return out.built()


def find_called_macros(
    caller: ReadFile,
    relations: Sequence[Relation],
    macros: Mapping[str, Sequence[tuple[ReadFile, Macro]]],
    resolver: NameResolver,
) -> Iterator[ReadFile]:
    """Find the uses in the macros that a file calls, and in those that they call.

    :param macros: the macros with their files, by the names that call them.
    :returns: the files with uses.
    """
    if caller.template is None:
        return
    waiting = sorted(caller.template.called & macros.keys())
    seen, searched = set[str](), set[int]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for file, macro in macros.get(name, ()):
            if id(macro) in searched:
                continue
            searched.add(id(macro))
            lookup = Lookup(resolver, file.script, file.script.namespace)
            reader = QueryReader(file.script.source.path, lookup, resolver.affected_objects)
            for body in macro.bodies:
                find_macro_uses(reader, body, relations, file.script.dialect)
            find_returned_uses(reader, macro, relations)
            waiting += sorted(macro.called & macros.keys() - seen)
            file.keep(reader.uses.items())
            if reader.uses:
                yield file


def _best(fragment: SqlFragment, dialect: str) -> tuple[ParsedStatement, ...]:
    """The statements of a reading; where one cannot be parsed, without the expressions that stand alone."""
    statements = tuple(parse_statements(fragment, dialect))
    if UNKNOWN not in fragment.text or all(s.tree is not None or s.words for s in statements):
        return statements
    kept: list[tuple[str, int]] = []
    at = 0
    for found in _ALONE.finditer(fragment.text):
        kept += zip(fragment.text[at : found.start()], fragment.indexes[at : found.start()], strict=True)
        at = found.end()
    kept += zip(fragment.text[at:], fragment.indexes[at:], strict=True)
    less = SqlFragment("".join(character for character, _ in kept), [index for _, index in kept])
    others = tuple(parse_statements(less, dialect))
    unread, still = (sum(s.tree is None and not s.words for s in some) for some in (statements, others))
    return others if still < unread else statements


def _relations(template: Template) -> Iterator[tuple[str, ...]]:
    """The relations that a template's code names, also where no SQL reads them."""
    names: dict[str, list[str]] = {}
    for literal in template.literals:
        if literal.function == "ref":
            yield REF, literal.text.text.lower()
        elif literal.function == "source":
            names.setdefault("", []).append(literal.text.text.lower())
            if len(names[""]) % 2 == 0:
                yield ("__source__", *names[""][-2:])
