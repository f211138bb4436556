"""Uses in the code of templates: literals that take part in no SQL that the parser reads.

``check_cols`` of a snapshot, the arguments of a macro that only runs in the warehouse, the body of a macro.
Such a name is compared with the columns of everything that the file reads; a match is a possible use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from icemigrate.iceberg.names import TableName
from icemigrate.sql_impact.ddl_uses import Word
from icemigrate.sql_impact.jinja_templates import Macro, Template
from icemigrate.sql_impact.jinja_values import VARIABLE
from icemigrate.sql_impact.query_uses import QueryReader
from icemigrate.sql_impact.relations import NONE, Relation
from icemigrate.sql_impact.sql_parser import parse_statements
from icemigrate.sql_impact.sql_source import SqlFragment
from icemigrate.sql_impact.syntax_tree import chain_of

_WORD = re.compile(r"\w+")
_NO_COLUMNS = re.compile(
    r"alias|auto_refresh|batch_size|catalog|catalog_name|database|description|docs|enabled|event_time_format"
    r"|file_format|format|full_refresh|grants|group|incremental_strategy|location|location_root|materialized"
    r"|meta|on_configuration_change|on_schema_change|owner|persist_docs|query_tag|schema|severity|strategy"
    r"|snowflake_warehouse|store_failures|table_format|table_properties|tags|target_database|target_schema"
    r"|tblproperties|transient|warehouse"
)
"""Keys of ``config`` whose values name no columns."""


def find_template_uses(
    reader: QueryReader,
    template: Template,
    output: Relation,
    relations: Sequence[Relation],
    mentioned: Callable[[str], Sequence[Relation]],
) -> None:
    """Find the uses in a template's code.

    :param reader: takes the uses, by their index in the template.
    :param output: what the model gives, which the keys of ``config`` name columns of.
    :param relations: what the file reads.
    :param mentioned: the tables that a text of ``config`` mentions, such as a hook.
    """
    read = template.read
    for literal in template.literals:
        if not literal.may_be_column or literal.text.index(0) in read:
            continue
        is_config = literal.function == "config"
        if is_config and _NO_COLUMNS.fullmatch(literal.key):
            continue
        candidates = [output] if is_config and output.is_complete else relations
        find_word_uses(
            reader, literal.text, [*candidates, *(mentioned(literal.text.text) if is_config else ())]
        )
    for lost in template.lost.values():
        find_word_uses(reader, lost, relations)
    for text, start in template.rest:
        find_word_uses(reader, SqlFragment(text, range(start, start + len(text))), relations)


def find_returned_uses(reader: QueryReader, macro: Macro, relations: Sequence[Relation]) -> None:
    """Find the uses in the texts of a macro's code, which it may return to the file that calls it."""
    for literal in macro.literals:
        if literal.may_be_column and not (
            literal.function == "config" and _NO_COLUMNS.fullmatch(literal.key)
        ):
            find_word_uses(reader, literal.text, relations)
    for lost in macro.lost.values():
        find_word_uses(reader, lost, relations)


def find_macro_uses(
    reader: QueryReader, body: SqlFragment, relations: Sequence[Relation], dialect: str
) -> None:
    """Find the uses in the body of a macro that a file calls.

    :param reader: takes the uses, by their index in the file that defines the macro.
    :param relations: what the file reads that calls the macro.
    """
    from sqlglot import exp

    for text in (f"select {body.text}", body.text):
        shift = len(text) - len(body.text)
        parsed = list(parse_statements(SqlFragment(text, range(len(text))), dialect))
        if all(statement.tree is not None for statement in parsed):
            for statement in parsed:
                for column in statement.tree.find_all(exp.Column):
                    for part in chain_of(column):
                        at = part.meta.get("start", 0) - shift
                        find_name_uses(reader, part.name, body.index(max(at, 0)), relations)
            return
    for word in _WORD.finditer(body.text):
        find_name_uses(reader, word[0], body.index(word.start()), relations)


def find_word_uses(reader: QueryReader, text: SqlFragment, relations: Iterable[Relation]) -> None:
    """Find the names of columns among the words of a text."""
    relations = list(relations)
    for word in _WORD.finditer(text.text):
        find_name_uses(reader, word[0], text.index(word.start()), relations)


def find_name_uses(
    reader: QueryReader, name: str, at: int, relations: Iterable[Relation], *, is_sure: bool = False
) -> None:
    """Report a name that stands alone as a use of the columns that are called so in relations."""
    tables: set[TableName] = set()
    for relation in relations:
        tables |= relation.tables
        held = relation.columns.get(name.lower(), NONE)
        if name == VARIABLE:
            held, is_sure = frozenset(o for origins in relation.columns.values() for o in origins), False
        for origin in held:
            for affected, _ in reader.find_affected(origin, ()):
                sure = is_sure and relation.is_sure and not origin.named_in
                reader.use(Word(name, at), affected, is_sure=sure, via=origin.via)
    for table in tables:
        for affected in reader.affected_objects(table):
            if len(affected.path) > 1 and affected.path[-1].lower() == name.lower():
                reader.use(Word(name, at), affected, is_sure=False)
