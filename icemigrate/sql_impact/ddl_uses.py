"""Uses in statements that are no queries: ``ALTER TABLE``, ``COMMENT ON``, procedures and other commands.

Also in the parts of other statements that no rule of this package reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.sql_impact.affected import AffectedObject
from icemigrate.sql_impact.query_uses import QueryReader
from icemigrate.sql_impact.relations import FromItem, QueryScope, Relation
from icemigrate.sql_impact.sql_parser import ParsedStatement, SqlWord
from icemigrate.sql_impact.syntax_tree import chain_of, identifier_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

_DOTTED = re.compile(r"[\w`\"\[\]]+(?:\s*\.\s*[\w`\"\[\]]+)*")
_RUNS_TEXT = frozenset({"call", "execute", "exec", "prepare"})
"""Commands whose string literals are SQL, names of tables or names of columns."""
_CHANGES_TABLE = frozenset({"alter"})


_NAMING = frozenset(
    (
        *(
            "column",
            "table",
            "tablealias",
            "alias",
            "aliases",
            "pivotalias",
            "columndef",
            "cte",
            "dot",
            "schema",
        ),
        *("lambda", "kwarg", "propertyeq", "window", "windowspec", "constraint", "declareitem", "parameter"),
        *("placeholder", "index", "grantprincipal", "userdefinedfunction"),
    )
)
"""Expressions whose own names are no columns, or are looked at with the whole."""
_REFERENCES = frozenset({"tag", "branch"})
"""Words behind which the name of a reference to a snapshot follows."""
_ABOUT_COLUMNS = re.compile(r"partition|sort|cluster|bucket|order|column", re.IGNORECASE)
"""Properties of tables whose texts name columns."""


class Word:
    """A name that no syntax tree has, in the form that :class:`QueryReader` takes.

    :param name: as written.
    :param start: its index in the fragment.
    """

    key = "identifier"

    def __init__(self, name: str, start: int) -> None:
        self.name, self.meta = name, {"start": start}


def find_alter_uses(reader: QueryReader, tree: exp.Alter) -> None:
    """``ALTER TABLE``: the columns that its actions name; not those that they add."""
    from sqlglot import exp

    if not isinstance(tree.this, exp.Table):
        return
    parts = tuple(part.name.lower() for part in tree.this.parts)
    target = FromItem(parts, reader.table(tree.this, parts, QueryScope()))
    new: set[int] = set()
    for action in tree.args.get("actions") or ():
        if isinstance(action, exp.Query):
            reader.query(action, QueryScope())
            continue
        for node in action.walk():
            if isinstance(node, exp.ColumnDef):
                new.add(id(node.this))
            elif isinstance(node, exp.RenameColumn):
                new |= {id(found) for found in node.args["to"].walk()}
            elif isinstance(node, exp.AlterColumn):
                reader.of_source(identifier_of(node.this), target.relation)
            elif isinstance(node, exp.Column) and id(node) not in new:
                reader.expression(node, QueryScope((target,)))
    for node in tree.find_all(exp.Identifier):
        if id(node) in new:
            reader.seen.add(node.meta.get("start", -1))


def find_comment_uses(reader: QueryReader, tree: exp.Comment) -> None:
    """``COMMENT ON TABLE`` and ``COMMENT ON COLUMN``."""
    from sqlglot import exp

    if isinstance(tree.this, exp.Table):
        reader.table(tree.this, tuple(part.name.lower() for part in tree.this.parts), QueryScope())
        return
    chain = chain_of(tree.this)
    names = [part.name.lower() for part in chain]
    # The name of the table ends where a declared one does; the rest is the column and fields of it.
    for count in range(len(names) - 1, 0, -1):
        found = reader.lookup(names[:count])
        if found.table is not None:
            for affected in found.affected_tables:
                reader.use(chain[count - 1], affected, is_sure=found.relation.is_sure)
            target = FromItem(tuple(names[:count]), found.relation)
            reader.expression(tree.this, QueryScope((target,)))
            return


def find_command_uses(reader: QueryReader, statement: ParsedStatement) -> None:
    """What the parser knows by its first word: any word that is the name of a column of a named table."""
    words = list(_words(statement))
    first = words[0].text.lower() if words else ""
    tables: dict[TableName, Relation] = {}
    for word in words:
        for found in _DOTTED.finditer(word.text if word.is_text else ""):
            _table(reader, found[0], word.start + found.start(), tables)
    plain = [word for word in words if not word.is_text]
    for at in range(len(plain)):
        if at and plain[at - 1].text == ".":
            continue
        end = at
        while end + 2 < len(plain) and plain[end + 1].text == ".":
            end += 2
        _table(reader, "".join(w.text for w in plain[at : end + 1]), plain[end].start, tables)
    for number, word in enumerate(words):
        if number and words[number - 1].text.lower() in _REFERENCES:
            continue
        inner = re.finditer(r"\w+", word.text) if word.is_text else re.finditer(r".+", word.text, re.DOTALL)
        for name in inner:
            for table, relation in tables.items():
                for affected in reader.affected_objects(table):
                    if affected.path and affected.path[-1].lower() == name[0].lower():
                        is_sure = first in _CHANGES_TABLE and relation.is_sure and not word.is_text
                        reader.use(Word(name[0], word.start + name.start()), affected, is_sure=is_sure)


def _words(statement: ParsedStatement) -> Iterator[SqlWord]:
    first = statement.words[0].text.lower() if statement.words else ""
    for word in statement.words:
        if not word.is_text or first in _RUNS_TEXT:
            yield word


def _table(reader: QueryReader, text: str, at: int, tables: dict[TableName, Relation]) -> None:
    parts = [part.strip(' \t\n`"[]').lower() for part in text.split(".")]
    if not all(parts):
        return
    found = reader.lookup(parts)
    if found.table is None:
        return
    reader.tables.add(found.table)
    tables[found.table] = found.relation
    for affected in found.affected_tables:
        reader.use(Word(parts[-1], at), affected, is_sure=found.relation.is_sure)


def find_defined_column_uses(reader: QueryReader, tree: exp.Create) -> None:
    """``CREATE TABLE shop.orders (total int)``: a definition of a table that the migration changes."""
    from sqlglot import exp

    schema = tree.this
    if not isinstance(schema, exp.Schema) or not isinstance(schema.this, exp.Table):
        return
    relation = reader.lookup(tuple(part.name.lower() for part in schema.this.parts)).relation
    for column in schema.expressions:
        reader.of_source(identifier_of(column), replace(relation, is_sure=False))


def find_unvisited_uses(reader: QueryReader, tree: Any) -> None:
    """The columns of a statement that no other rule has looked at, by their names alone."""
    from sqlglot import exp

    affected_objects = [
        affected for table in reader.tables for affected in reader.affected_objects(table) if affected.path
    ]
    for node in tree.find_all(exp.Column) if affected_objects else ():
        chain = chain_of(node)
        if chain and all(part.meta.get("start", -1) not in reader.seen for part in chain):
            use_by_name(reader, chain, affected_objects)
    for name in tree.find_all(exp.Identifier) if affected_objects else ():
        is_new = name.parent is None or name.parent.key in _NAMING
        if not is_new and not _is_lambda_parameter(name) and name.meta.get("start", -1) not in reader.seen:
            use_by_name(reader, [name], affected_objects)
    for given in tree.find_all(exp.Property) if affected_objects else ():
        if _ABOUT_COLUMNS.search(given.name) is not None:
            for literal in given.find_all(exp.Literal):
                for word in re.finditer(r"\w+", literal.name):
                    at = literal.meta.get("start", 0) + 1 + word.start()
                    use_by_name(reader, [Word(word[0], at)], affected_objects)


def _is_lambda_parameter(name: exp.Identifier) -> bool:
    from sqlglot import exp

    around = name.find_ancestor(exp.Lambda)
    while around is not None:
        if any(one.name.lower() == name.name.lower() for one in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def find_unresolved_uses(reader: QueryReader, tables: Iterable[TableName]) -> None:
    """The names that may belong to a relation that the reader could not follow.

    :param tables: the declared tables that the file reads.
    """
    affected_objects = [
        affected
        for table in {*tables, *reader.tables}
        for affected in reader.affected_objects(table)
        if affected.path
    ]
    for chain in reader.unresolved:
        use_by_name(reader, chain, affected_objects)


def use_by_name(
    reader: QueryReader, chain: Sequence[Any], affected_objects: Sequence[AffectedObject]
) -> None:
    """Report a dotted name as a possible use of every column whose path it ends with or contains."""
    names = [part.name.lower() for part in chain]
    for affected in affected_objects:
        path = [name.lower() for name in affected.path]
        for at in range(len(names) - len(path) + 1):
            if names[at : at + len(path)] == path:
                reader.use(chain[at + len(path) - 1], affected, is_sure=False)
