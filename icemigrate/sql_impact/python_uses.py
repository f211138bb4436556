"""Uses in Python files: columns that DataFrame calls name, and names that may be columns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from icemigrate.frozen import replace
from icemigrate.sql_impact.data_frames import Frames
from icemigrate.sql_impact.ddl_uses import Word
from icemigrate.sql_impact.python_names import called
from icemigrate.sql_impact.python_sql import PythonModule
from icemigrate.sql_impact.query_uses import QueryReader
from icemigrate.sql_impact.relations import NONE, FromItem, QueryScope, Relation
from icemigrate.sql_impact.sql_parser import parse_statements
from icemigrate.sql_impact.sql_source import FragmentBuilder, SqlFragment
from icemigrate.sql_impact.template_uses import find_name_uses, find_word_uses

_VALUES = re.compile(
    r"lit|isin|contains|startswith|endswith|like|rlike|ilike|eqNullSafe|otherwise|cast|astype|"
    r"date_format|to_date|to_timestamp|hint|option|options|format|mode|save|load|table|sql|"
    r"saveAsTable|insertInto|writeTo|forName|createOrReplaceTempView|createTempView|"
    r"registerTempTable|createOrReplaceGlobalTempView|appName|config|getenv|get_argument|"
    r"add_argument|getLogger|import_module|strftime|strptime|join_path"
)
"""Functions whose texts are values, and no columns."""
_MOST_USES = 1_000
"""How many uses of a file are looked for one by one; the places beyond are counted."""
_LABELS = re.compile(
    r"tags|task_id|dag_id|description|doc_md|owner|.*conn_id|pool|queue|name|title|label|help|level|group_id|key"
)
"""Arguments whose texts are labels."""
_NEW_NAMES = frozenset({"alias", "name", "toDF"})
"""Functions whose texts name new columns."""
_WRITERS = frozenset({"writeTo", "insertInto", "saveAsTable", "forName", "load_table", "write_iceberg"})
_OPERATOR = re.compile(
    r"[<>=+*/(|%-]|\b(?:and|or|not|is|in|like|between|as|asc|desc|case|cast)\b", re.IGNORECASE
)


class PythonUses:
    """Finds the uses of one file.

    :param reader: takes the uses, by their index in the module's text.
    :param reach: what the file reads, and what the files that import it read.
    """

    def __init__(
        self, module: PythonModule, frames: Frames, reader: QueryReader, reach: Sequence[Relation]
    ) -> None:
        self.module, self.frames, self.reader, self.reach = module, frames, reader, reach
        self.written = list(self._written())
        tables = {t for r in (*reach, *self.written) for t in r.tables}
        self.words = {s.path[-1].lower() for t in tables for s in reader.affected_objects(t) if s.path}
        self.words |= {
            name for relation in (*reach, *self.written) for name, held in relation.columns.items() if held
        }
        self.pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(self.words)))})(?!\w)", re.I)
        walk = ast.walk(module.names.tree)
        self.reads = [n for n in walk if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]

    def find(self) -> list[int]:
        """Find the uses.

        :returns: the places beyond the limit that contain the name of a column, and were not looked at.
        """
        nodes = list(ast.walk(self.module.names.tree)) if self.words else []
        for number, node in enumerate(nodes):
            if len(self.reader.uses) >= _MOST_USES:
                return sorted(self._named(nodes[number:]))
            if isinstance(node, ast.Attribute) and node.attr.lower() in self.words:
                self._attribute(node)
            elif isinstance(node, (ast.Constant, ast.JoinedStr)):
                self._text(node)
            elif isinstance(node, ast.keyword) and node.arg is not None and node.arg.lower() in self.words:
                call = self.module.names.parents.get(id(node))
                if isinstance(call, ast.Call) and called(call) in {"Row", "withColumns", "assign", "struct"}:
                    at = self.module.index(node.lineno, node.col_offset)
                    find_name_uses(self.reader, node.arg, at, [*self.reach, *self.written])

        return []

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
        if base is None:
            return
        at = self.module.index(node.end_lineno or 0, node.end_col_offset or 0) - len(node.attr)
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
        names = self.module.names
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            return
        parent = names.parents.get(id(node))
        if isinstance(parent, (ast.JoinedStr, ast.FormattedValue)) or self.module.is_prose(node):
            return
        fragment = self.module.read(node)
        if self.pattern.search(fragment.text) is None or isinstance(parent, ast.Compare):
            return
        call = self._around(node)
        if call is not None and (
            _VALUES.fullmatch(called(call)) or (called(call) == "when" and node in call.args[1:])
        ):
            return
        is_new = call is not None and (
            called(call) in _NEW_NAMES
            or (called(call) == "withColumn" and call.args[:1] == [node])
            or (called(call) == "withColumnRenamed" and node in call.args[1:])
        )
        if is_new:
            find_word_uses(self.reader, fragment, self.written)
            return
        relations = [*self._receivers(node)]
        if isinstance(parent, ast.Subscript):
            base = self.frames.frame(parent.value)
            if base is not None and isinstance(parent.value, ast.Attribute):
                self._field(parent.value.attr, fragment, base)
            if base is not None:
                self._expression(fragment, [base])
        elif relations:
            self._expression(fragment, relations)
        elif self._is_kept_apart(node):
            return
        elif fragment.text.strip().lower() in self.words or re.fullmatch(r"\w+(\.\w+)+", fragment.text):
            self._floating(fragment)
        elif _OPERATOR.search(fragment.text):
            self._floating_expression(fragment)

    def _is_kept_apart(self, node: ast.AST) -> bool:
        """Whether a text is a label, or an element of what the file only takes elements of."""
        names = self.module.names
        for one in names.around(node):
            if isinstance(one, ast.keyword) and _LABELS.fullmatch(one.arg or ""):
                return True
            if isinstance(one, ast.Assign) and all(isinstance(t, ast.Name) for t in one.targets):
                bound = {t.id for t in one.targets if isinstance(t, ast.Name)}
                read = [n for n in self.reads if n.id in bound]
                parents = [names.parents.get(id(n)) for n in read]
                return bool(read) and all(
                    isinstance(p, (ast.Subscript, ast.Attribute)) and p.value is n
                    for p, n in zip(parents, read, strict=True)
                )
            if isinstance(one, ast.stmt):
                return False
        return False

    def _around(self, node: ast.AST) -> ast.Call | None:
        """The call whose argument a node is, directly or in lists and dictionaries."""
        for one in self.module.names.around(node):
            if isinstance(one, ast.Call):
                return one
            if isinstance(one, ast.stmt):
                return None
        return None

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
        """A text that no DataFrame takes directly, such as an element of a list of columns."""
        find_word_uses(self.reader, fragment, [*self.reach, *self.written])

    def _floating_expression(self, fragment: SqlFragment) -> None:
        from sqlglot import exp

        parsed = list(
            parse_statements(SqlFragment(f"select {fragment.text}", range(len(fragment.text) + 7)), "spark")
        )
        for statement in parsed:
            for column in statement.tree.find_all(exp.Column) if statement.tree is not None else ():
                start = column.this.meta.get("start") if isinstance(column.this, exp.Identifier) else None
                if start is not None:
                    find_name_uses(self.reader, column.name, fragment.index(start - 7), self.reach)
