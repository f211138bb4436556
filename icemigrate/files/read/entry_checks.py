"""Checks of one table entry that need no declared state, for files with errors, which are not replayed.

One error must not hide the others: the valid part of an entry is read, and its types, terms and names are
checked as replay checks them.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import Diagnostic
from icemigrate.files.parse.json_schemas import JsonSchema, SchemaRule
from icemigrate.files.parse.schema_validation import invalid_nodes
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence
from icemigrate.files.read.migration_file import UNSET, ColumnEntry, TableEntry, Unset
from icemigrate.files.replay.default_values import BadDefault, default_value
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.frozen import replace

_NAMELESS = "unknown.table"
"""Replaces the name of a table that has none, or an unreadable one."""


def without_invalid_nodes(node: YamlMapping, schema: JsonSchema, rule: SchemaRule) -> YamlMapping | None:
    """A table's node without its invalid parts; ``None`` where nothing remains."""
    rest: YamlNode | None = _without(node, invalid_nodes(node, schema, rule) - {id(node)})
    while isinstance(rest, YamlMapping):
        if rest.get("name") is None and rest.get("match") is None:
            name = (YamlScalar("name", "name", node.place), YamlScalar(_NAMELESS, _NAMELESS, node.place))
            rest = replace(rest, entries=(name, *rest.entries))
        # The remaining part may lack the invalid one: a column its name, a data step its assignments.
        wrong = invalid_nodes(rest, schema, rule)
        if not wrong:
            return rest
        rest = _without(rest, wrong)
    return None


def _without(node: YamlNode, wrong: frozenset[int]) -> YamlNode | None:
    if id(node) in wrong:
        return None
    if isinstance(node, YamlMapping):
        pairs = ((key, _without(value, wrong)) for key, value in node.entries if id(key) not in wrong)
        return replace(node, entries=tuple((key, value) for key, value in pairs if value is not None))
    if isinstance(node, YamlSequence):
        items = (_without(item, wrong) for item in node.items)
        return replace(node, items=tuple(item for item in items if item is not None))
    return node


def check_entry(entry: TableEntry) -> tuple[Diagnostic, ...]:
    """Errors in an entry's names, types, defaults and terms that do not depend on earlier migrations."""
    diagnostics = EntryDiagnostics(replace(entry, match=None), entry.name or "")
    if entry.name is not None:
        diagnostics.name(entry.name, ("name",))
    if entry.renamed_from is not UNSET:
        diagnostics.name(entry.renamed_from, ("renamed_from",))
    for old, new in entry.renames:
        diagnostics.path(old, ("renames", old))
        diagnostics.path(new, ("renames", old, "to"))
    for column in _all_columns(entry.columns):
        _check_column_entry(column, diagnostics)
    for one in entry.retype:
        diagnostics.path(one.column, ("retype", one.column))
        diagnostics.type(one.to, one.column, ("retype", one.column, "to"))
    for key, names in _named(entry):
        for name in names:
            diagnostics.path(name, (key, name))
    for at, text in _whole(entry.partition_by):
        diagnostics.partition(text, ("partition_by", at))
    for at, text in _whole(entry.sort_by):
        diagnostics.sort(text, ("sort_by", at))
    return tuple(diagnostics.found)


def _whole(terms: tuple[str, ...] | Unset) -> Iterator[tuple[str, str]]:
    """The terms and their positions, without the parts of a term that a comma split: those are reported
    already.
    """
    for at, text in enumerate(() if terms is UNSET else terms):
        if text.count("(") == text.count(")"):
            yield str(at), text


def _named(entry: TableEntry) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "drop_columns", tuple(drop.name for drop in entry.drop_columns)
    yield "restore_columns", entry.restore_columns
    yield "identifier", () if entry.identifier is UNSET else entry.identifier


def _all_columns(columns: tuple[ColumnEntry, ...]) -> Iterator[ColumnEntry]:
    for column in columns:
        yield column
        below = (column.element, column.key, column.value)
        yield from _all_columns(() if column.fields is UNSET else column.fields)
        yield from _all_columns(tuple(part for part in below if part is not UNSET))


def _check_column_entry(column: ColumnEntry, diagnostics: EntryDiagnostics) -> None:
    subject = ("columns", column.path)
    diagnostics.path(column.name, subject)
    if column.type is UNSET:
        return
    type_ = diagnostics.type(column.type, column.path, (*subject, "type"))
    if type_ is None or column.default is UNSET:
        return
    try:
        default_value(column.default, type_)
    except BadDefault as e:
        diagnostics.error("bad-default", (*subject, "default"), f"`{column.path}`: {e}", e.hint)
