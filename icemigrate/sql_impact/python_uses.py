"""Uses in Python files: columns that DataFrame calls name, and names that may be columns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from icemigrate.frozen import replace
from icemigrate.sql_impact.data_frames import Frames
from icemigrate.sql_impact.ddl_uses import Word
from icemigrate.sql_impact.jinja_values import UNKNOWN
from icemigrate.sql_impact.python_names import called
from icemigrate.sql_impact.python_pieces import SqlPieces
from icemigrate.sql_impact.python_roles import Roles
from icemigrate.sql_impact.python_sql import PythonModule, looks_like_sql
from icemigrate.sql_impact.query_uses import QueryReader
from icemigrate.sql_impact.relations import NONE, FromItem, QueryScope, Relation
from icemigrate.sql_impact.sql_parser import parse_statements
from icemigrate.sql_impact.sql_source import FragmentBuilder, SqlFragment
from icemigrate.sql_impact.template_uses import find_name_uses, find_word_uses

_MOST_USES = 1_000
"""How many uses of a file are looked for one by one; the places beyond are counted."""
_WRITERS = frozenset({"writeTo", "insertInto", "saveAsTable", "forName", "load_table", "write_iceberg"})
_OPERATOR = re.compile(
    r"[<>=+*/(|%-]|\b(?:and|or|not|is|in|like|between|as|asc|desc|case|cast)\b", re.IGNORECASE
)


_LITERAL = re.compile(r"(?:[=<>(,]|\b(?:in|like|and|between))\s*'[^'\n]*'", re.IGNORECASE)
"""A value in a condition."""

_AFTER_LABEL = re.compile(rf": ?{UNKNOWN}")
"""What follows a word in a message such as ``f"total: {count}"``."""


class PythonUses:
    """Finds the uses of one file.

    :param reader: takes the uses, by their index in the module's text.
    :param reach: what the file reads, and what the files read that import it or that it imports.
    :param mentioned: the tables that the file names in any other way.
    """

    def __init__(
        self,
        module: PythonModule,
        frames: Frames,
        reader: QueryReader,
        reach: Sequence[Relation],
        mentioned: Sequence[Relation] = (),
    ) -> None:
        self.module, self.frames, self.reader = module, frames, reader
        self.roles, self.pieces = Roles(module, frames), SqlPieces(module)
        self.left: list[int] = []
        self.written = list(self._written())
        placed = {t for r in (*reach, *self.written) for t in r.tables}
        # A table that no call is known to read may be written to.
        unplaced = [one for one in mentioned if not one.tables <= placed]
        self.written += unplaced
        self.reach = [*reach, *unplaced]
        self.all = [*self.reach, *self.written]
        tables = {t for r in self.all for t in r.tables}
        self.words = {s.path[-1].lower() for t in tables for s in reader.affected_objects(t) if s.path}
        self.words |= {name for relation in self.all for name, held in relation.columns.items() if held}
        self.pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(self.words)))})(?!\w)", re.I)

    def find(self) -> list[int]:
        """Find the uses.

        :returns: the places beyond the limit that contain the name of a column, and were not looked at.
        """
        nodes = list(ast.walk(self.module.names.tree)) if self.words else []
        for number, node in enumerate(nodes):
            if len(self.reader.uses) >= _MOST_USES:
                return [*self.left, *sorted(self._named(nodes[number:]))]
            if isinstance(node, ast.Attribute) and node.attr.lower() in self.words:
                self._attribute(node)
            elif isinstance(node, (ast.Constant, ast.JoinedStr)):
                self._text(node)
            elif isinstance(node, ast.keyword) and (node.arg or "").lower() in self.words:
                if self.roles.is_column_argument(node):
                    self._possible(node.arg or "", node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and self.roles.is_field(node):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self._possible(target.id, target)
        return self.left

    def _possible(self, name: str, node: ast.expr | ast.keyword) -> None:
        find_name_uses(self.reader, name, self.module.index(node.lineno, node.col_offset), self.all)

    def _named(self, nodes: Sequence[ast.AST]) -> Iterator[int]:
        """Where nodes contain the name of a column."""
        for node in nodes:
            if isinstance(node, (ast.Attribute, ast.keyword)):
                text = (node.attr if isinstance(node, ast.Attribute) else node.arg) or ""
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if self.pattern.search(text) is not None:
                yield self.module.index(node.lineno, node.col_offset)

    def _written(self) -> Iterator[Relation]:
        """The tables that the file writes."""
        for node in ast.walk(self.module.names.tree):
            if isinstance(node, ast.Call) and called(node) in _WRITERS:
                for given in node.args:
                    if (text := self.module.known_text(given)) is not None:
                        relation = self.frames.lookup(
                            [p.strip("` ").lower() for p in text.split(".")]
                        ).relation
                        if relation.tables:
                            yield relation

    def _attribute(self, node: ast.Attribute) -> None:
        parent = self.module.names.parents.get(id(node))
        if not isinstance(node.ctx, ast.Load) or (isinstance(parent, ast.Call) and parent.func is node):
            return
        base = self.frames.frame(node.value)
        at = self.module.index(node.end_lineno or 0, node.end_col_offset or 0) - len(node.attr)
        if base is None:
            if not self.roles.is_own_attribute(node):
                find_name_uses(self.reader, node.attr, at, self.reach)
            return
        if isinstance(node.value, ast.Attribute):
            self._field(node.value.attr, SqlFragment(node.attr, range(at, at + len(node.attr))), base)
        self._name(node.attr, at, [base])

    def _field(self, column: str, field: SqlFragment, base: Relation) -> None:
        """A field of a column: ``df.address.zip`` and ``df.address["zip"]``."""
        chain = [Word(name, field.index(0)) for name in (column, field.text)]
        held = base.columns.get(column.lower(), NONE)
        self.reader.origins(chain, held, is_sure=base.is_sure)

    def _name(self, name: str, at: int, relations: Sequence[Relation]) -> None:
        """A name that is a column of one of the relations."""
        for relation in relations:
            if relation.columns.get(name.lower()) or len(relations) == 1:
                known = replace(relation, is_opaque=False)
                find_name_uses(self.reader, name, at, [known], is_sure=relation.is_sure)
            if relation.is_opaque and name.lower() not in relation.columns:
                find_name_uses(self.reader, name, at, self.reach)

    def _text(self, node: ast.Constant | ast.JoinedStr) -> None:
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            return
        parent = self.module.names.parents.get(id(node))
        if isinstance(parent, (ast.JoinedStr, ast.FormattedValue)) or self.module.is_prose(node):
            return
        fragment = self._fragment(node)
        if self.pattern.search(fragment.text) is None:
            return
        if (subscript := self.roles.subscript(node)) is not None:
            self._element(fragment, subscript)
        elif self.roles.is_compared_value(node) or self.roles.is_value(node):
            return
        elif self.roles.is_new_name(node):
            find_word_uses(self.reader, fragment, self.written)
        elif isinstance(parent, ast.Compare):
            find_word_uses(self.reader, fragment, self.reach)
        elif relations := [*self._receivers(node)]:
            self._expression(fragment, relations)
        elif self.roles.is_kept_apart(node):
            return
        elif not looks_like_sql(fragment.text) or self.pieces.is_piece(node):
            self._floating(fragment)

    def _fragment(self, node: ast.Constant | ast.JoinedStr) -> SqlFragment:
        """A text, with the index of each character."""
        fragment = self.module.read(node)
        if fragment.text or not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            return fragment
        # The places of what is inside of an f-string are not exact.
        at = self.module.index(node.lineno, node.col_offset)
        return SqlFragment(node.value, [at] * len(node.value))

    def _element(self, fragment: SqlFragment, subscript: ast.Subscript) -> None:
        """A text in square brackets: a column, unless they belong to a mapping of the file."""
        base = self.frames.frame(subscript.value)
        if base is None:
            if not self.roles.is_own_mapping(subscript.value):
                find_word_uses(self.reader, fragment, self.reach)
            return
        if isinstance(subscript.value, ast.Attribute):
            self._field(subscript.value.attr, fragment, base)
        self._expression(fragment, [base])

    def _receivers(self, node: ast.AST) -> Iterator[Relation]:
        """The DataFrames whose method a node is an argument of, at any depth."""
        before = node
        for one in self.module.names.around(node):
            if isinstance(one, ast.stmt):
                return
            is_argument = isinstance(one, ast.Call) and one.func is not before
            before = one
            if not is_argument or not isinstance(one, ast.Call) or not isinstance(one.func, ast.Attribute):
                continue
            base = self.frames.frame(one.func.value)
            if base is not None:
                yield base
                other = (
                    self.frames.frame(one.args[0]) if called(one) in {"join", "merge"} and one.args else None
                )
                yield from () if other is None else (other,)
                return

    def _expression(self, fragment: SqlFragment, relations: Sequence[Relation]) -> None:
        """A text that is a column or an expression of columns."""
        out = FragmentBuilder()
        out.put("select ", fragment.index(0))
        out.append(fragment)
        sql = out.built()
        parsed = list(parse_statements(sql, "spark"))
        if any(statement.tree is None for statement in parsed):
            for word in re.finditer(r"\w+", fragment.text):
                for relation in relations:
                    reach = self.reach if relation.is_opaque else [relation]
                    find_name_uses(self.reader, word[0], fragment.index(word.start()), reach)
            return
        for relation in relations:
            inner = self.reader.quiet()
            for statement in parsed:
                scope = QueryScope((FromItem(("",), relation),))
                for projection in statement.tree.args.get("expressions") or ():
                    inner.expression(projection, scope)
                for chain in self._unresolved(statement.tree, relation):
                    if relation.is_opaque or len(chain) > 1:
                        reach = self.reach if relation.is_opaque else [relation]
                        find_name_uses(inner, chain[-1].name, chain[-1].meta["start"], reach)
            for (at, affected), use in inner.uses.items():
                place = Word(use.written, sql.index(at))
                is_sure = use.is_sure and relation.is_sure and not relation.is_opaque
                self.reader.use(place, affected, is_sure=is_sure, via=use.via)

    @staticmethod
    def _unresolved(tree: ast.AST, relation: Relation) -> Iterator[Sequence[Word]]:
        from sqlglot import exp

        from icemigrate.sql_impact.syntax_tree import chain_of

        for column in tree.find_all(exp.Column):  # type: ignore[attr-defined]
            chain = chain_of(column)
            if chain and chain[0].name.lower() not in relation.columns:
                yield chain  # type: ignore[misc]

    def _floating(self, fragment: SqlFragment) -> None:
        """A text that no DataFrame takes directly: a column of a list, a condition, the text of a schema."""
        for word in self._outside_of_literals(fragment):
            if len(self.reader.uses) >= _MOST_USES:
                self.left.append(fragment.index(word.start()))
                return
            find_name_uses(self.reader, word[0], fragment.index(word.start()), self.all)

    @staticmethod
    def _outside_of_literals(fragment: SqlFragment) -> Iterator[re.Match[str]]:
        """The words of a text; of an expression, without those in its own string literals."""
        is_expression = _OPERATOR.search(fragment.text) is not None
        literals = [one.span() for one in _LITERAL.finditer(fragment.text)] if is_expression else []
        for word in re.finditer(r"\w+", fragment.text):
            is_label = _AFTER_LABEL.match(fragment.text, word.end()) is not None
            if not is_label and not any(start < word.start() < end for start, end in literals):
                yield word
